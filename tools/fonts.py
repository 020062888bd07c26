"""Make the typeface of the book's figures from its published package: Inter, cut to Latin.

    python tools/fonts.py           fetch the pinned package, rewrite lib/inferlab/data/fonts
    python tools/fonts.py --check   make it again, and say if the committed files differ

matplotlib reads TrueType; the package holds the same outlines as WOFF. The semibold weight is filed
as the family's bold, which is what a figure asks for.
"""

import argparse
import io
import sys
from pathlib import Path

from fontTools.ttLib import TTFont

from vendor import download

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "lib" / "inferlab" / "data" / "fonts"
PACKAGE = "@fontsource/inter@5.3.0"
INTEGRITY = "sha512-RofMylZmjlJEfELXeNHFWBRcSs75rGU/6bV2S2jfnvv/3rPXPGe0LgUJTklcHZ9lM4OZmAVFhcJPnACfb91A3g=="
STYLES = {
    "Inter-Regular.ttf": ("files/inter-latin-400-normal.woff", "Regular"),
    "Inter-Italic.ttf": ("files/inter-latin-400-italic.woff", "Italic"),
    "Inter-Bold.ttf": ("files/inter-latin-600-normal.woff", "Bold"),
}
REGULAR, ITALIC, BOLD = 1 << 6, 1 << 0, 1 << 5  # bits of OS/2 fsSelection


def convert(woff, style):
    """The bytes of a TrueType font of family Inter in one of its four standard styles."""
    font = TTFont(io.BytesIO(woff), recalcTimestamp=False)
    font.flavor = None
    names = font["name"]
    for number, text in ((1, "Inter"), (2, style), (4, f"Inter {style}"), (6, f"Inter-{style}")):
        names.setName(text, number, 3, 1, 0x409)
    for number in (16, 17, 21, 22, 25):
        names.removeNames(nameID=number)
    font["OS/2"].fsSelection = {"Regular": REGULAR, "Italic": ITALIC, "Bold": BOLD}[style]
    font["OS/2"].usWeightClass = 700 if style == "Bold" else 400
    font["head"].macStyle = {"Regular": 0, "Italic": 2, "Bold": 1}[style]
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()


def make():
    """{file name: bytes} of everything in the folder."""
    files = download(PACKAGE, INTEGRITY)
    made = {name: convert(files[source], style) for name, (source, style) in STYLES.items()}
    return made | {"OFL.txt": files["LICENSE"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    made = make()
    if not options.check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, data in made.items():
            (FOLDER / name).write_bytes(data)
            print(f"{name}: {len(data):,} bytes")
        return 0
    wrong = [name for name, data in made.items() if (FOLDER / name).read_bytes() != data]
    print(
        f"differ: {', '.join(wrong)}" if wrong else "the committed fonts are what the package makes"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
