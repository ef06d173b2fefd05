"""The report on screens of every width: what comes first, and that all of it can be read."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons

from browser import MISSING, Browser
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.plotting.palette import CLUSTER_COLOURS
from sketchmeans.report import write_report

pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

IRIS = load_iris()
WIDTHS = (360, 400, 768, 1280, 1800)

BROKEN = """
    // Words that do not stand on one line, and how wide their place is.
    const broken = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode, parent = node.parentElement;
        if (parent.closest("script, noscript, svg, select, option, pre, .tip, .heat i")) continue;
        if (!parent.checkVisibility()) continue;
        for (const found of node.textContent.matchAll(/[^\\s-]+/g)) {
            const range = document.createRange();
            range.setStart(node, found.index);
            range.setEnd(node, found.index + found[0].length);
            const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
            if (lines.size > 1 && found[0].length < 20) broken.push(found[0]);
        }
    }
    return broken;
"""
CUT = """
    // What stands out of the window though nobody can scroll to it, or is narrower than its words.
    const cut = [];
    for (const one of document.body.querySelectorAll("*")) {
        if (one.closest(".skip, .tip, script, noscript, .heat i")) continue;
        const box = one.getBoundingClientRect(), scrolled = one.closest(".wide");
        if (!one.checkVisibility()) continue;
        const name = `${one.localName}.${one.className.baseVal ?? one.className}`;
        const end = document.documentElement.clientWidth;
        if (!scrolled && (box.left < -0.5 || box.right > end + 0.5))
            cut.push([name, one.textContent.slice(0, 30), box.left, box.right]);
        const words = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (one.closest("svg") || !one.clientWidth || !words) continue;
        if (one.scrollWidth > one.clientWidth + 1)
            cut.push([name, one.textContent.slice(0, 30), one.clientWidth, one.scrollWidth]);
    }
    return cut;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


def moons():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = KernelKMeans(2, random_state=0).fit(X)
    return model, X, {"feature_names": ["x", "y"]}


def iris():
    model = KernelKMeans(3, kernel="rbf", random_state=0).fit(IRIS.data)
    names = {"feature_names": IRIS.feature_names, "truth": IRIS.target_names[IRIS.target]}
    command = "sketchmeans cluster iris.csv -k 3 --kernel rbf --label-column species"
    return model, IRIS.data, {"command": command, "source": "iris.csv"} | names


def digits():
    X, y = load_digits(return_X_y=True)
    return KernelKMeans(12, random_state=0).fit(X), X, {"truth": y}


def long_names():
    X, y = make_blobs(200, 14, centers=3, random_state=0)
    names = [f"a_name_of_many_letters_{column}_" * 2 for column in range(14)]
    more = {"truth": [f"label_{'x' * 60}_{label}" for label in y], "source": "s" * 300}
    X *= 1e9
    model = KernelKMeans(3, kernel="rbf", random_state=0).fit(X)
    return model, X, {"feature_names": names, "ids": [f"id_{'y' * 80}"] * 200} | more


def sixty_five():
    X, _ = make_blobs(650, 3, centers=65, random_state=0)
    return KernelKMeans(65, random_state=0, n_init=1).fit(X), X, {}


def given_kernel():
    K = np.exp(-np.square(IRIS.data[:, None] - IRIS.data[None]).sum(axis=2))
    return KernelKMeans(3, kernel="precomputed", random_state=0).fit(K), K, {}


def full_of_one_column():
    X, _ = make_blobs(60, 1, centers=2, random_state=0)
    return FullKernelKMeans(2, n_init=1, random_state=0).fit(X), X, {}


def one_cluster():
    X, _ = make_blobs(40, 2, random_state=0)
    return KernelKMeans(1, random_state=0).fit(X), X, {}


PAGES = (
    moons, iris, digits, long_names, sixty_five, given_kernel, full_of_one_column, one_cluster,
)  # fmt: skip


def opened(browser, folder, make):
    """Open the report of these data, which is written once."""
    path = folder / f"{make.__name__}.html"
    if not path.exists():
        model, X, names = make()
        write_report(path, model, X, **names)
    browser.open(path.as_uri())
    browser.settle()
    return browser


@pytest.mark.parametrize("make", PAGES)
def test_every_word_can_be_read_and_nothing_is_cut_at_any_width(browser, folder, make):
    page = opened(browser, folder, make)
    for width in WIDTHS:
        page.resize(width, 800)
        page.settle()
        page.settle()
        overflow = page.run("return document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, width
        assert page.run(BROKEN) == [], width
        assert page.run(CUT) == [], width
    assert page.log("browser") == []


def test_a_broken_word_and_a_cut_chart_are_noticed(browser, folder):
    page = opened(browser, folder, iris)
    page.resize(400, 800)
    page.settle()
    page.run("""
        const cell = document.querySelector(".pairs td");
        cell.style.overflowWrap = "anywhere";
        cell.closest("table").style.tableLayout = "auto";
        cell.style.maxWidth = cell.style.width = "1rem";
        cell.style.display = "block";
        document.querySelector(".chart svg").style.width = "32rem";
    """)
    assert page.run(BROKEN) != []
    assert any(name == "svg." for name, *_ in page.run(CUT))


@pytest.mark.parametrize("make", [iris, digits, moons, full_of_one_column])
def test_words_in_drawings_do_not_overlap(browser, folder, make):
    page = opened(browser, folder, make)
    for width in WIDTHS:
        page.resize(width, 800)
        page.settle()
        page.settle()
        drawings = page.run("""
            return [...document.querySelectorAll(".plot > svg, .chart svg")].map((svg) =>
                [...svg.querySelectorAll("text")].map((t) => {
                    const r = t.getBoundingClientRect();
                    return [r.left, r.top, r.right, r.bottom];
                }))""")
        assert len(drawings) == 4
        for boxes in drawings:
            assert len(boxes) > 3
            for a, b in itertools.combinations(boxes, 2):
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                assert apart, (width, a, b)


def test_picture_clusters_and_what_to_do_next_come_first(browser, folder):
    page = opened(browser, folder, iris)
    headings = page.run("return [...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert headings == [
        "Picture", "Clusters", "What to do next", "Profiles", "Typical members", "True labels",
        "What was asked", "Spectrum", "Certificate", "Time and memory", "Repeat it",
    ]  # fmt: skip
    places = page.run(
        "return [...document.querySelectorAll('section')].map((e) => e.getBoundingClientRect().top)"
    )
    assert all(first < places[6] for first in places[:5])
    top = page.run("return document.querySelector('header').innerText")
    assert top.startswith(
        "Clusters of iris.csv\n\n150 samples in 3 clusters: the largest has 62 (41.3%), the "
    )
    assert "best possible" not in top  # the certificate is no headline
    assert "least" not in top.split("smallest")[1]


def boxes(page, selector):
    script = """return [...document.querySelectorAll(arguments[0])].map((e) => {
        const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })"""
    return page.run(script, selector)


def test_a_wide_screen_is_used(browser, folder):
    page = opened(browser, folder, iris)
    for width, columns in ((360, 1), (400, 1), (768, 1), (1280, 2), (1800, 3)):
        page.resize(width, 900)
        page.settle()
        left, right = boxes(page, ".picture")
        clusters, advice = boxes(page, "#s1, #s2")
        if columns == 1:
            assert left[3] <= right[1]
            assert clusters[3] <= advice[1]
        else:
            assert left[2] <= right[0]
            assert clusters[2] <= advice[0]
            assert abs(clusters[1] - advice[1]) < 1
        assert len({round(box[0]) for box in boxes(page, ".columns section")}) == columns
        used = max(box[2] for box in boxes(page, "section"))
        assert used > 0.95 * page.run("return document.documentElement.clientWidth")


def where(page, name, index):
    """The place of a sample in a picture, in pixels."""
    script = """
        const data = JSON.parse(document.getElementById("samples").textContent);
        const cluster = data.cluster[arguments[1]];
        const rank = data.cluster.slice(0, arguments[1]).filter((c) => c === cluster).length;
        const group = document.querySelector(`#${arguments[0]} .group[data-cluster="${cluster}"]`);
        const box = group.children[rank].getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    """
    return page.run(script, name, index)


@pytest.mark.parametrize("width", [360, 1280])
def test_two_moons_look_like_two_moons(browser, folder, width):
    page = opened(browser, folder, moons)
    page.resize(width, 900)
    page.settle()
    page.settle()
    X = moons()[1]
    rows = range(0, 300, 15)
    places = np.array([where(page, "features", row) for row in rows])
    across = np.polyfit(X[rows, 0], places[:, 0], 1)
    up = np.polyfit(X[rows, 1], places[:, 1], 1)
    np.testing.assert_allclose(np.polyval(across, X[rows, 0]), places[:, 0], atol=1)
    np.testing.assert_allclose(np.polyval(up, X[rows, 1]), places[:, 1], atol=1)
    assert across[0] == pytest.approx(-up[0], rel=0.01)  # one unit is as long up as across


def test_a_sample_that_is_pointed_at_in_one_picture_is_ringed_in_the_other(browser, folder):
    page = opened(browser, folder, iris)
    page.run("document.getElementById('features').scrollIntoView({behavior: 'instant'})")
    page.settle()
    row = int(IRIS.data[:, 2].argmax())
    page.pointer(("move", *where(page, "features", row)))
    seen = page.run("""
        const rings = ["features", "embedding"].map((name) => {
            const ring = document.querySelector(`#${name} .here`);
            const box = ring.getBoundingClientRect();
            return [ring.getAttribute("visibility"), box.x + box.width / 2, box.y + box.height / 2];
        });
        const on = [...document.querySelectorAll(".tip.on")].map((e) => e.closest("figure").id);
        return [rings, on, document.querySelector(".tip.on strong").textContent];
    """)
    rings, on, name = seen
    assert on == ["features"]
    for picture, (visible, x, y) in zip(("features", "embedding"), rings, strict=True):
        assert visible == "visible"
        np.testing.assert_allclose([x, y], where(page, picture, int(name)), atol=1)


def test_twelve_clusters_have_colours_of_their_own_and_are_named_on_hover(browser, folder):
    page = opened(browser, folder, digits)
    fills = page.run("""
        return [...document.querySelectorAll("#embedding .group")].map((g) =>
            [g.dataset.cluster, getComputedStyle(g.firstChild).fill])""")
    assert len(fills) == len({colour for _, colour in fills}) == 12
    wanted = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in CLUSTER_COLOURS[:12]]
    assert {colour for _, colour in fills} == {f"rgb({r}, {g}, {b})" for r, g, b in wanted}
    labels = digits()[0].labels_
    page.run("document.getElementById('embedding').scrollIntoView({behavior: 'instant'})")
    page.settle()
    for cluster in range(12):
        page.pointer(("move", *where(page, "embedding", int(np.flatnonzero(labels == cluster)[0]))))
        told = page.run("""
            const tip = document.querySelector("#embedding .tip.on");
            return [tip.querySelector("strong").textContent, tip.querySelector("td").textContent];
        """)
        assert int(told[1]) == labels[int(told[0])]
    # Pointing at a name in the legend shows that cluster alone.
    page.run("scrollTo({top: 0, behavior: 'instant'})")
    page.settle()
    left, top, right, bottom = boxes(page, "#legend button")[4]
    page.pointer(("move", (left + right) / 2, (top + bottom) / 2))
    lit = page.run("""
        return [...document.querySelectorAll("#embedding .group:not(.dim)")].map((g) => +g.dataset.cluster)
    """)  # noqa: E501
    assert lit == [4]
    numbers = page.run(
        "return [...document.querySelectorAll('#embedding text.name')].map((t) => t.textContent)"
    )
    assert numbers == ["4"]


def test_the_numbers_of_clusters_stand_in_the_pictures(browser, folder):
    page = opened(browser, folder, moons)
    for name in ("features", "embedding"):
        found = page.run(
            "return [...document.querySelectorAll(arguments[0])].map((t) => t.textContent)",
            f"#{name} text.name",
        )
        assert found == ["0", "1"]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_two_or_three_samples_are_shown(browser, tmp_path, n):
    X = np.arange(2.0 * n).reshape(n, 2)
    model = KernelKMeans(1, kernel="rbf", random_state=0).fit(X)
    path = write_report(tmp_path / "few.html", model, X)
    browser.open(path.as_uri())
    browser.settle()
    assert browser.log("browser") == []
    assert browser.run("return document.querySelectorAll('#features .plot .mark').length") == n


def test_the_heat_map_is_a_table_that_tells_high_from_low_without_colour(browser, folder):
    page = opened(browser, folder, iris)
    model, X, _ = iris()
    rows = page.run("""
        return [...document.querySelectorAll(".heat tbody tr")].map((row) => [...row.cells].map(
            (cell) => [cell.textContent, cell.className, getComputedStyle(cell, "::after").content,
                getComputedStyle(cell).backgroundColor]))""")
    means = np.array([X[model.labels_ == k].mean(axis=0) for k in range(3)])
    scores = (means - X.mean(axis=0)) / X.std(axis=0)
    assert [row[0][0] for row in rows] == IRIS.feature_names
    for feature, row in enumerate(rows):
        for cluster, (text, _, sign, _) in enumerate(row[1:4]):
            score = scores[cluster, feature]
            word = "" if abs(score) < 0.5 else (" high" if score > 0 else " low")
            assert text == f"{means[cluster, feature]:.3g}{word}"
            assert ("▴" in sign, "▾" in sign) == (word == " high", word == " low")
        assert row[4][0] == f"{X[:, feature].mean():.3g}"
    shades = {kind.split()[0]: colour for row in rows for _, kind, _, colour in row[1:4]}
    assert len(set(shades.values())) == len(shades) > 3
