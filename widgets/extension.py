"""The JupyterLab extension: its files, and how a copy of them is made current.

JupyterLab and Notebook 7 load what lies in `share/jupyter/labextensions/` of their environment.
Installing the package puts the files there (`setup.py`), but not where the package stays in its
checkout (`pip install --editable`), nor after a change of the scripts. This does, and `dev.py` does
it each time:

    python -m mlc_lab_widgets.extension
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: where the extension lies in an environment
PLACE = Path("share", "jupyter", "labextensions", "mlc-lab")


def files() -> dict[str, list[Path]]:
    """The files of each folder of the extension, "" being its own: what JupyterLab loads at its
    start, and the scripts and styles of the views, which it loads when they are drawn."""
    own = HERE / "labextension"
    scripts = [*(own / "static").glob("*.js"), *(HERE / "bundles").glob("*.js")]
    return {"": sorted(own.glob("*.json")),
            "static": sorted([*scripts, *(HERE / "js").glob("*.css")])}


def copy(folder: Path) -> None:
    """Copy the extension into a folder."""
    for name, paths in files().items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copyfile(path, folder / name / path.name)


if __name__ == "__main__":
    copy(Path(sys.prefix) / PLACE)
