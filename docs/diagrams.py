"""Draws the diagrams: docs/pictures/*.svg from the Mermaid files beside them.

Usage: python docs/diagrams.py

The pictures are committed, so that neither a reader nor a build needs Mermaid. Drawing needs Chromium, and npm, which
fetches Mermaid.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

PICTURES: Final = Path(__file__).parent / "pictures"
MERMAID: Final = "mermaid@11.17.2"
SCRIPT: Final = "package/dist/mermaid.min.js"
SCRIPT_SHA256: Final = "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8"
CONFIG: Final = {
    "startOnLoad": False,
    "theme": "neutral",
    "themeVariables": {"noteBkgColor": "#fff5cc", "noteTextColor": "#222", "noteBorderColor": "#cca"},
    "deterministicIds": True,
    "fontFamily": "sans-serif",
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False},
    "sequence": {"mirrorActors": False},
}
PAGE: Final = """<!doctype html><meta charset="utf-8"><pre id="svg"></pre><script src="mermaid.js"></script><script>
mermaid.initialize({config});
mermaid.render("diagram", {source}).then(
  ({{ svg }}) => (document.getElementById("svg").textContent = svg),
  (error) => (document.getElementById("svg").textContent = "FAULT " + error.message),
);
</script>"""


def mark(source: str) -> str:
    """Returns the first line of a picture, which identifies the diagram that it shows."""
    return f"<!-- drawn by docs/diagrams.py from {hashlib.sha256(source.encode()).hexdigest()} -->\n"


def draw(source: str, folder: Path) -> str:
    """Returns the picture of a diagram."""
    page = folder / "page.html"
    page.write_text(PAGE.format(config=json.dumps(CONFIG), source=json.dumps(source)))
    programs = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))
    chromium = next(filter(None, programs), None)
    if chromium is None:
        sys.exit("Chromium is not installed")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    dom = subprocess.run([chromium, *flags, page.as_uri()], capture_output=True, text=True, check=True).stdout
    found = re.search(r'<pre id="svg">(.*?)</pre>', dom, re.DOTALL)
    svg = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if found else ""
    if not svg.startswith("<svg"):
        sys.exit(f"Mermaid draws nothing: {svg or dom[:500]}")
    return _with_its_size(svg)


def _with_its_size(svg: str) -> str:
    """Returns a picture that is as large as its view box; Mermaid's fills the page."""
    box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
    if box is None:
        sys.exit("Mermaid's picture has no view box")
    return svg.replace('width="100%"', f'width="{float(box[1]):.0f}" height="{float(box[2]):.0f}"', 1)


def main() -> None:
    """Draws all diagrams."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        npm = ["npm", "pack", "--silent", MERMAID]
        subprocess.run(npm, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            script = archive.extractfile(SCRIPT)
            code = script.read() if script else b""
        if hashlib.sha256(code).hexdigest() != SCRIPT_SHA256:
            sys.exit(f"{MERMAID} is not the pinned one: {hashlib.sha256(code).hexdigest()}")
        (folder / "mermaid.js").write_bytes(code)
        for file in sorted(PICTURES.glob("*.mmd")):
            source = file.read_text()
            file.with_suffix(".svg").write_text(mark(source) + draw(source, folder) + "\n")


if __name__ == "__main__":
    main()
