"""The report in a real browser: quiet, interactive, and deaf to what hides in the data."""

import functools
import http.server
import re
import threading

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

from browser import MISSING, Browser
from sketchmeans import KernelKMeans
from sketchmeans.report import write_report
from sketchmeans.report.html import command_line, printable, short

pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def model():
    return KernelKMeans(3, kernel="rbf", random_state=0).fit(IRIS.data)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return write_report(
        tmp_path_factory.mktemp("report") / "iris.html",
        model,
        IRIS.data,
        command="sketchmeans cluster iris.csv",
        feature_names=NAMES,
        ids=[f"flower {row}" for row in range(150)],
        truth=IRIS.target_names[IRIS.target],
        source="iris.csv",
    )


@pytest.fixture
def page(browser, path):
    browser.open(path.as_uri())
    browser.run("document.getElementById('embedding').scrollIntoView({behavior: 'instant'})")
    browser.settle()
    return browser


def where(page, index):
    """The place of a sample in the window, in pixels."""
    script = """
        const data = JSON.parse(document.getElementById("samples").textContent);
        const clusters = [...document.querySelectorAll("#embedding .group")];
        const inside = data.cluster.map((c, i) => [c, i]).filter(([c]) => c === data.cluster[arguments[0]]);
        const rank = inside.findIndex(([, i]) => i === arguments[0]);
        const group = clusters.find((g) => Number(g.dataset.cluster) === data.cluster[arguments[0]]);
        const box = group.children[rank].getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    """  # noqa: E501
    return page.run(script, index)


def lonely(model, axes):
    """A sample that is far from all others in the picture."""
    Y = model.embedding_[:, axes]
    away = np.linalg.norm(Y[:, None] - Y[None], axis=2) + 9 * np.eye(len(Y))
    return int(away.min(axis=1).argmax())


def drawn_axes(page):
    script = """return [...document.querySelectorAll("#embedding select")].map((select) =>
        Number(select.selectedOptions[0].textContent.split(" ")[1]))"""
    return page.run(script)


def tip(page):
    return page.run(
        "const t = document.querySelector('#embedding .tip');"
        "return getComputedStyle(t).visibility === 'visible' ? t.innerText : null"
    )


def ticks(page):
    """The numbers on the horizontal axis."""
    script = """return [...document.querySelectorAll("#embedding text.tick")]
        .map((t) => t.textContent)"""
    found = [text.replace("−", "-") for text in page.run(script)]
    return [float(text) for text in found if re.fullmatch(r"-?[0-9.]+", text)]


def test_it_loads_without_an_error_and_asks_no_host(page, path):
    assert page.log("browser") == []
    assert page.requests() == [path.as_uri()]
    assert page.run("return document.title") == "Clusters of iris.csv"
    for name in ("features", "embedding"):
        assert page.run(f"return document.querySelectorAll('#{name} .plot .mark').length") == 150


def test_it_asks_for_nothing_else_where_a_server_hands_it_out(browser, path):
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=path.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}/iris.html")
        browser.settle()
        server.shutdown()
    assert asked == ["/iris.html"]
    assert browser.log("browser") == []


def test_the_policy_stops_script_style_and_requests_that_are_not_its_own(page):
    page.run("""
        const script = document.createElement("script");
        script.textContent = "window.__hacked = 1";
        document.body.appendChild(script);
        document.body.setAttribute("onclick", "window.__hacked = 2");
        document.body.click();
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.appendChild(image);
    """)
    page.settle()
    assert page.run("return window.__hacked === undefined")
    blocked = [entry["message"] for entry in page.log("browser")]
    assert sum("Content Security Policy" in message for message in blocked) == 3


def test_pointing_at_a_sample_tells_its_id_cluster_and_values(page, model):
    row = lonely(model, drawn_axes(page))
    assert tip(page) is None
    page.pointer(("move", *where(page, row)))
    told = tip(page).splitlines()
    assert told[0] == f"flower {row}"
    assert told[1].split("\t") == ["cluster", str(model.labels_[row])]
    assert told[2].split("\t") == ["true label", IRIS.target_names[IRIS.target[row]]]
    values = {name: float(value) for name, value in (line.split("\t") for line in told[3:])}
    assert values == dict(zip(NAMES, IRIS.data[row], strict=True))
    page.pointer(("move", 5, 5))
    assert tip(page) is None


def test_the_tip_stays_inside_the_window_at_any_sample(page, model):
    Y = model.embedding_[:, drawn_axes(page)]
    for row in {*Y.argmin(axis=0), *Y.argmax(axis=0)}:
        page.pointer(("move", *where(page, int(row))))
        box = page.run(
            "const r = document.querySelector('#embedding .tip').getBoundingClientRect();"
            "return [r.left, r.right, innerWidth]"
        )
        assert 0 <= box[0] < box[1] <= box[2]


def test_the_legend_highlights_clusters(page, model):
    def dimmed():
        return page.run("""
            return [...document.querySelectorAll("#embedding .dim")]
                .map((g) => +g.dataset.cluster)""")

    def press(number):
        page.run("document.querySelectorAll('#legend button')[arguments[0]].click()", number)

    words = page.run(
        "return [...document.querySelectorAll('#legend button')].map((b) => b.innerText.trim())"
    )
    assert words == [f"{k} ({np.sum(model.labels_ == k)})" for k in range(3)]
    assert dimmed() == []
    press(1)
    assert dimmed() == [0, 2]
    opacity = "return getComputedStyle(document.querySelector('#embedding .dim')).opacity"
    assert float(page.run(opacity)) < 0.2
    other = lonely(model, drawn_axes(page))
    if model.labels_[other] != 1:  # what is dimmed does not answer
        page.pointer(("move", *where(page, other)))
        assert tip(page) is None or f"flower {other}\n" not in tip(page)
    press(2)
    assert dimmed() == [0]
    pressed = "return [...document.querySelectorAll('#legend button')].map((b) => b.ariaPressed)"
    assert page.run(pressed) == ["false", "true", "true"]
    press(1)
    press(2)
    assert dimmed() == []


def test_the_legend_works_by_keyboard(page):
    page.run("document.querySelectorAll('#legend button')[0].focus()")
    page.press("tab", "space")
    dim = "return [...document.querySelectorAll('#embedding .dim')].map((g) => +g.dataset.cluster)"
    assert page.run(dim) == [0, 2]


def test_the_wheel_scrolls_the_page_until_the_picture_has_the_focus(page, model):
    row = lonely(model, drawn_axes(page))
    all_ticks, scrolled = ticks(page), page.run("return window.scrollY")
    page.run("document.documentElement.style.scrollBehavior = 'auto'")
    page.wheel(*where(page, row), 120)
    page.settle()
    assert page.run("return window.scrollY") == scrolled + 120
    assert ticks(page) == all_ticks
    page.pointer(("move", *where(page, row)), "down", "up")
    page.wheel(*where(page, row), -600)
    page.settle()
    assert page.run("return window.scrollY") == scrolled + 120
    assert ticks(page) != all_ticks
    page.press("escape", "escape")  # lets go of the sample, then of the picture
    page.wheel(600, 450, 40)
    page.settle()
    assert page.run("return window.scrollY") == scrolled + 160


def test_the_wheel_zooms_about_the_pointer_and_a_double_click_shows_all(page, model):
    row = lonely(model, drawn_axes(page))
    before, all_ticks = where(page, row), ticks(page)
    page.run("document.querySelector('#embedding .plot').focus({preventScroll: true})")
    page.wheel(*before, -600)
    page.settle()
    zoomed = ticks(page)
    assert zoomed[1] - zoomed[0] < all_ticks[1] - all_ticks[0]
    np.testing.assert_allclose(where(page, row), before, atol=1.5)
    page.pointer(("move", *before), "down", "up", "down", "up")
    page.settle()
    assert ticks(page) == all_ticks


def test_dragging_moves_and_dragging_with_shift_zooms_into_the_box(page, model):
    row = lonely(model, drawn_axes(page))
    x, y = where(page, row)
    page.pointer(("move", x, y), "down", ("move", x - 60, y + 40), "up")
    page.settle()
    np.testing.assert_allclose(where(page, row), [x - 60, y + 40], atol=2)
    step = ticks(page)
    page.hold("shift")
    page.pointer(("move", x - 90, y + 10), "down", ("move", x - 30, y + 70), "up")
    page.release()
    page.settle()
    closer = ticks(page)
    assert closer[1] - closer[0] < (step[1] - step[0]) / 3
    frame = page.run(
        "const r = document.querySelector('#embedding .frame').getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]"
    )
    np.testing.assert_allclose(where(page, row), frame, atol=12)  # the middle of the box


def test_the_picture_works_by_keyboard(page, model):
    page.run("document.querySelector('#embedding .plot').focus({preventScroll: true})")
    start = ticks(page)
    page.press("+", "+")
    page.settle()
    assert ticks(page) != start
    page.press("0")
    page.settle()
    assert ticks(page) == start
    page.press("right")
    column = drawn_axes(page)[0]
    order = np.argsort(model.embedding_[:, column], kind="stable")
    assert tip(page).splitlines()[0] == f"flower {order[0]}"
    page.press("right")
    assert tip(page).splitlines()[0] == f"flower {order[1]}"
    page.press("left", "left")
    assert tip(page).splitlines()[0] == f"flower {order[-1]}"


def test_the_buttons_zoom(page):
    start = ticks(page)
    for _ in range(3):
        page.run("document.querySelector('#embedding [data-do=closer]').click()")
        page.settle()
    closer = ticks(page)
    assert closer[1] - closer[0] < start[1] - start[0]
    page.run("document.querySelector('#embedding [data-do=farther]').click()")
    page.run("document.querySelector('#embedding [data-do=whole]').click()")
    page.settle()
    assert ticks(page) == start


def test_other_columns_can_be_chosen(page, model):
    page.run("""
        const select = document.querySelectorAll("#embedding select")[1];
        select.value = 3;
        select.dispatchEvent(new Event("change"));
    """)
    across, up = drawn_axes(page)
    Y = model.embedding_[:, [across, up]]
    places = np.array([where(page, row) for row in range(0, 150, 10)])
    for axis, sign in ((0, 1), (1, -1)):
        fit = np.polyfit(Y[::10, axis], places[:, axis], 1)
        assert np.sign(fit[0]) == sign
        np.testing.assert_allclose(np.polyval(fit, Y[::10, axis]), places[:, axis], atol=1.5)


def luminance(colour):
    parts = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_in_dark(page, scheme):
    page.look(scheme=scheme)
    page.settle()
    back = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(back) > 0.5) == (scheme == "light")
    colours = page.run("""
        return [...new Set([...document.querySelectorAll("h1, p, th, td, a, button, pre, em")]
            .map((e) => getComputedStyle(e).color))]""")
    fills = page.run("""
        return [...new Set([...document.querySelectorAll("svg text, .kept, .bar rect")]
            .map((e) => getComputedStyle(e).fill))]""")
    assert len(colours) >= 3
    for colour in colours + fills:
        assert contrast(colour, back) > 4.5, colour


def test_it_prints_on_a_few_pages_without_its_controls(page, tmp_path):
    page.print_to(tmp_path / "iris.pdf")
    printed = (tmp_path / "iris.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 6
    page.devtools("Emulation.setEmulatedMedia", media="print")
    hidden = "return getComputedStyle(document.querySelector(arguments[0])).display"
    for selector in ("nav", ".controls", ".hint"):
        assert page.run(hidden, selector) == "none"


HOSTILE = [
    "<script>window.__hacked=1</script>",
    "</script><script>__hacked=1</script>",
    "<img src=x onerror=__hacked=1>",
    "<svg onload=__hacked=1>",
    "<!--",
    "--><b>bold</b>",
    "<!--<script>",
    "]]><i>x</i>",
    '"><img src=x onerror=__hacked=1>',
    "' onmouseover='__hacked=1",
    '" autofocus onfocus="__hacked=1',
    "javascript:__hacked=1",
    "</title><script>__hacked=1</script>",
    "</style><b>x</b>",
    "</td></tr></table><h1>out</h1>",
    "</pre></code><iframe src=//x>",
    "&lt;b&gt; &amp; &#60;",
    "&#x3c;script&#x3e;",
    "<a href=http://127.0.0.1:9/>x</a>",
    "<base href=//127.0.0.1:9/>",
    "<meta http-equiv=refresh content=0>",
    "<link rel=stylesheet href=//x>",
    "{{7*7}} ${7*7} `x`",
    "\\u003cscript\\u003e \\x3c",
    "nul \x00 bell \x07 esc \x1b[31m",
    "line\r\nbreak\ttab",
    "\u202egnp.exe",
    "half \ud800 a character",
    "\u2028\u2029\ufeff",
    "__proto__",
]
COUNTS = """
    const counts = {};
    for (const e of document.querySelectorAll("*")) counts[e.localName] = (counts[e.localName] || 0) + 1;
    delete counts.wbr; // where names may break: after their own signs
    return counts;
"""  # noqa: E501


def hostile_report(folder, model, X, names, first):
    """A report whose every name is one of these; column names begin with the one numbered first."""
    turn = [names[(first + k) % len(names)] for k in range(len(names))]
    return write_report(
        folder / "report.html",
        model,
        X,
        command=["sketchmeans", "cluster", *names],
        feature_names=turn[:12],
        ids=[names[row % len(names)] for row in range(len(X))],
        truth=[names[row % len(names)] for row in range(len(X))],
        source=turn[0],
        overwrite=True,
    )


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(90, 12, centers=6, random_state=0)
    return X, KernelKMeans(6, random_state=0).fit(X)


def test_hostile_strings_appear_as_text_and_never_as_markup_or_script(browser, blobs, tmp_path):
    X, model = blobs
    assert len(set(HOSTILE)) == 30
    harmless = [f"name {number:02}" for number in range(30)]
    browser.open(hostile_report(tmp_path, model, X, harmless, 0).as_uri())
    expected = browser.run(COUNTS)
    assert expected["section"] == 11
    for first in range(30):
        path = hostile_report(tmp_path, model, X, HOSTILE, first)
        browser.open(path.as_uri())
        browser.settle()
        assert browser.log("browser") == []
        assert browser.requests() == [path.as_uri()]
        assert browser.run("return typeof window.__hacked") == "undefined"
        assert browser.run(COUNTS) == expected
        # The file's name, as title and text.
        shown = short(HOSTILE[first])
        assert browser.run("return document.title") == f"Clusters of {shown}"
        heading = browser.run("return document.querySelector('h1').textContent")
        assert heading == f"Clusters of {shown}"
        columns = browser.run(
            "return [...document.querySelectorAll('.groups thead th')].map((e) => e.textContent)"
        )
        assert columns[4:] == [short(HOSTILE[(first + k) % 30]) for k in range(12)]


def test_hostile_ids_labels_and_words_of_the_command_are_shown_as_they_are(
    browser, blobs, tmp_path
):
    X, model = blobs
    browser.open(hostile_report(tmp_path, model, X, HOSTILE, 0).as_uri())
    shown = {short(name) for name in HOSTILE}
    labels = browser.run("""
        const tables = [...document.querySelectorAll("table")];
        const table = tables.find((t) => t.rows[0].cells[0].textContent === "true label");
        return [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
    """)
    assert set(labels) == shown
    command = browser.run("return [...document.querySelectorAll('pre')].at(-1).textContent")
    assert command == printable(command_line(["sketchmeans", "cluster", *HOSTILE]))
    # Every sample in turn tells its id and its values by their names.
    browser.run("document.querySelector('#embedding .plot').focus()")
    before = browser.run("return document.querySelectorAll('*').length")
    seen = set()
    for _ in range(90):
        browser.press("right")
        told = browser.run("""
            const tip = document.querySelector("#embedding .tip");
            return [tip.querySelector("strong").textContent,
                [...tip.querySelectorAll("th")].map((e) => e.textContent),
                document.querySelectorAll("*").length - tip.querySelectorAll("*").length];
        """)
        seen.add(told[0])
        assert told[1] == ["cluster", "true label", *(short(name) for name in HOSTILE[:12])]
        assert told[2] == before
    assert seen == shown
    assert browser.log("browser") == []
    assert browser.run("return typeof window.__hacked") == "undefined"
