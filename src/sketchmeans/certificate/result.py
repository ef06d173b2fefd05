"""The certificate: what is known of a clustering, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass

from sketchmeans.text import counted

USELESS = 2.0
"""A relative gap above this (200 %) is called no useful bound."""


@dataclass(frozen=True)
class Certificate:
    """What is known of a clustering. A field that is None has its ``reason``."""

    n_clusters: int
    trace_kernel: float
    """tr K: the objective of one cluster per sample is 0, and no objective exceeds it."""
    trace_error: float
    """tr(K − YYᵀ) for the embedding Y that was clustered."""
    gap_bound: float | None = None
    """L(found) − L(best) is at most this, if K-means solved the embedding to optimality."""
    objective_lower: float | None = None
    """L(found) is at least this, whatever K-means did."""
    objective_upper: float | None = None
    """L(found) is at most this, whatever K-means did."""
    objective: float | None = None
    """L(found) exactly, where a pass was made for it."""
    optimum_lower: float | None = None
    """No clustering into ``n_clusters`` has a lower objective."""
    relative_gap: float | None = None
    """objective_upper / optimum_lower − 1: the labels found are at most this far from the best."""
    gap_bound_probabilistic: float | None = None
    """As gap_bound, but wrong with probability ``failure_probability`` at most."""
    optimum_lower_probabilistic: float | None = None
    """As optimum_lower, in the same event."""
    failure_probability: float | None = None
    normalized_cut: float | None = None
    """Of the labels found, on the graph that the kernel is; None where its degrees are not one."""
    normalized_cut_lower: float | None = None
    """No clustering with as many clusters cuts less."""
    level: str = "free"
    """What ``optimum_lower`` came from: "free" (moments of the kernel), "blocks" (eigenvalues of
    blocks of samples), "lifted" or "triangles"."""
    n_blocks: int | None = None
    """Blocks of samples that it is the sum of."""
    block_size: int | None = None
    """Samples of the largest of them."""
    interrupted: bool = False
    """Whether Ctrl-C ended the work on it: valid, but more could be had."""
    objective_from: str | None = None
    """How ``objective_upper`` was found: "all pairs", "landmarks"; None where a fit knew it."""
    relative_gap_probabilistic: float | None = None
    """As relative_gap, but wrong with probability ``failure_probability`` at most."""
    assumes_psd: bool = False
    """Whether positive semidefiniteness of K was assumed and not known."""
    reason: str | None = None

    @property
    def _is_sharp(self) -> bool:
        """Whether rounding leaves the objective the digits that are shown of it."""
        if self.objective is None or self.objective_upper is None:
            return False
        return self.objective_upper - self.objective <= 1e-6 * abs(self.objective)

    @property
    def scope(self) -> str:
        """What the numbers are about, and what they cannot tell."""
        what = "the objective" if self.normalized_cut is None else "the cut"
        return (
            f"This bounds {what} under this kernel. Whether the kernel and {self._clusters} suit "
            "the data it cannot tell."
        )

    @property
    def how(self) -> str:
        """How the best possible is known, in words that follow it; empty for level "free"."""
        if self.level == "free":
            return ""
        what = {
            "blocks": "the eigenvalues",
            "lifted": "a lifted semidefinite bound",
            "triangles": "a lifted semidefinite bound with triangles",
        }[self.level]
        if self.n_blocks == 1:
            return f", by {what} of all samples"
        return f", by {what} of {self.n_blocks:,} blocks of up to {self.block_size:,} samples"

    @property
    def _clusters(self) -> str:
        return counted(self.n_clusters, "cluster")

    def __str__(self) -> str:
        head = f"Certificate for {self._clusters}"
        if self.n_clusters == 1:
            return f"{head}: all samples are in one, and no other labels are possible."
        if self.objective_upper is None:
            return f"{head}: no bound. {self.reason}"
        is_cut = self.normalized_cut is not None and self.normalized_cut_lower is not None
        what = "the cut" if is_cut else "the objective"
        return "\n".join(
            [
                f"{head}: it bounds {what} of this kernel, not how well kernel and number of "
                "clusters suit the data",
                *(self._cut() if is_cut else self._objective()),
            ]
        )

    def _objective(self) -> list[str]:
        """Say what is known of the objective."""
        if self.objective is not None and self._is_sharp:
            lines = [f"  objective of these labels: {self.objective:.6g}, exactly"]
        else:
            lines = [
                f"  objective of these labels: between {self.objective_lower:.6g} and "
                f"{self.objective_upper:.6g}"
            ]
        if self.objective_from == "landmarks":
            lines[0] += " (the upper end by landmarks, not by all pairs)"
        lines.append(f"  best possible objective:   at least {self.optimum_lower:.6g}{self.how}")
        if self.relative_gap is None or self.relative_gap > USELESS:
            lines.append(f"  no useful bound on the distance to the best. {self.reason}")
        else:
            lines.append(
                f"  so the objective is at most {gap_in_words(self.relative_gap)} above the least "
                f"that {self._clusters} can have"
            )
        certain = USELESS if self.relative_gap is None else min(self.relative_gap, USELESS)
        if (
            self.relative_gap_probabilistic is not None
            and self.relative_gap_probabilistic < certain
        ):
            likely = gap_in_words(self.relative_gap_probabilistic)
            lines.append(
                f"  the objective is at most {likely} above the least, except with probability "
                f"{self.failure_probability:g}"
            )
        if self.interrupted:
            lines.append("  This was interrupted: it is valid, and with more time it may improve.")
        if self.gap_bound is not None:
            lines.append(
                f"  if K-means solved the embedding to optimality: at most {self.gap_bound:.6g} "
                f"above ({self.gap_bound / max(self.trace_kernel, 1e-300):.1%} of the trace)"
            )
        if self.gap_bound_probabilistic is not None:
            lines.append(
                f"  … and at most {self.gap_bound_probabilistic:.6g}, best possible at least "
                f"{self.optimum_lower_probabilistic:.6g}, except with probability "
                f"{self.failure_probability:g}"
            )
        if self.assumes_psd:
            lines.append("  This assumes that the kernel is positive semidefinite.")
        return lines

    def _cut(self) -> list[str]:
        """Say what is known of the normalized cut."""
        cut, least = self.normalized_cut, self.normalized_cut_lower
        assert cut is not None
        assert least is not None
        chance = self.n_clusters - 1
        lines = [
            f"  normalized cut of these labels: {cut:.4g}, or {cut / chance:.2%} of what labels at "
            "random have",
            "  (how much of the neighbourhoods of samples lies in other clusters, summed over "
            "clusters)",
        ]
        if cut < 1e-6 * chance:
            return [*lines, "  no two clusters share a neighbour: no clustering cuts less"]
        lines.append(f"  best possible normalized cut:   at least {least:.4g}{self.how}")
        if least > 0 and cut <= 3 * least and self.level != "free":
            lines.append(
                f"  so the cut is at most {gap_in_words(cut / least - 1)} above the least that "
                f"{self._clusters} can have"
            )
        if self.interrupted:
            lines.append("  This was interrupted: it is valid, and with more time it may improve.")
        if 3 * least < cut and self.level in ("free", "blocks"):
            lines.append(
                "  the bound is from eigenvalues alone, and mostly far below the best there is"
            )
        return lines


def gap_in_words(gap: float) -> str:
    """Return a gap for people: a tenth of a per cent, and more digits where it is small.

    >>> gap_in_words(0.0654), gap_in_words(0.00213), gap_in_words(0.000041)
    ('6.5%', '0.21%', '0.0041%')
    """
    if gap >= 0.01:
        return f"{gap:.1%}"
    return f"{gap:.2%}" if gap >= 0.001 else f"{float(f'{100 * gap:.2g}'):g}%"
