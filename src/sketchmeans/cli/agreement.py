"""How labels agree with true classes, as commands print it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchmeans._arrays import IntArray
    from sketchmeans.io import TableData


def agreement_of(table: TableData, labels: IntArray, n_clusters: int) -> dict[str, Any]:
    """Return the agreement under its name for ``--json``; nothing where classes are not known."""
    from sketchmeans.advice.comparing import accuracy
    from sketchmeans.report.content import agreement

    if table.labels is None:
        return {}
    found = agreement(table.labels, labels, n_clusters)
    return {
        "agreement": {
            "with": table.label_name,
            "accuracy": accuracy(found.codes, labels),
            "NMI": found.nmi,
            "ARI": found.ari,
        }
    }


def agreement_line(found: dict[str, Any]) -> str:
    """Return an agreement as a person reads it."""
    return (
        f"Agreement with {found['with']!r}: accuracy {found['accuracy']:.3f}, NMI "
        f"{found['NMI']:.3f}, ARI {found['ARI']:.3f}."
    )
