"""Certificates."""

from sketchmeans.certificate.certifying import certify
from sketchmeans.certificate.result import Certificate

__all__ = ["Certificate", "certify"]
