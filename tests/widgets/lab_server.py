"""A JupyterLab of the tests' own: on loopback, in a folder of its own, without network."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from mlc_lab_widgets import extension

# The notebook in front, in the page's own terms.
NOTEBOOK = "window.jupyterapp?.shell?.currentWidget"
ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
#: of a cell in the page: the error it ended with, or nothing
FAILED = """(cell) => (cell.outputs?.toJSON() ?? [])
    .filter((output) => output.output_type === "error")
    .map((output) => `${output.ename}: ${output.evalue}`)[0] ?? null"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LabServer:
    """`jupyter lab` on a folder; a context manager. The application is exposed to the page.

    With `save_state` JupyterLab saves the state of widgets, which is a setting of its own.
    """

    def __init__(self, folder, save_state=True):
        self.save_state = save_state
        self.folder = Path(folder)
        self.work = self.folder / "work"
        self.work.mkdir(parents=True)
        self.token = secrets.token_hex(8)

    def __enter__(self):
        port = free_port()
        settings = self.folder / "settings"
        extension.copy(self.folder / "data" / "labextensions" / "mlc-lab")
        environment = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "JUPYTER_PREFER_ENV_PATH": "0",  # the extension of this checkout, as it is now
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.folder / "workspaces"),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "PYTHONPATH": os.pathsep.join(filter(None, [
                str(ROOT), str(TESTS), str(TESTS / "widgets"), os.environ.get("PYTHONPATH")])),
        }
        # No news and no extension manager: both would ask the internet.
        for name, values in {
            "@jupyterlab/apputils-extension/notification": {
                "fetchNews": "false", "checkForUpdates": False,
            },
            "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": self.save_state},
        }.items():  # fmt: skip
            path = settings / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(values))
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={self.work}", f"--IdentityProvider.token={self.token}",
            "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class="
            "jupyterlab.handlers.announcements.NeverCheckForUpdate",
        ]  # fmt: skip
        self.log = open(self.folder / "server.log", "wb")
        self.process = subprocess.Popen(
            command, env=environment, cwd=self.work, stdout=self.log, stderr=self.log
        )
        self.base = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(self.url("api/status"), timeout=2).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.__exit__()
                    log = (self.folder / "server.log").read_text(errors="replace")
                    raise RuntimeError(f"JupyterLab did not start:\n{log[-3000:]}") from None
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()

    def url(self, path):
        joint = "&" if "?" in path else "?"
        return f"{self.base}/{path}{joint}token={self.token}"

    def write(self, name, *cells):
        """Write a notebook of code cells, and of text where a cell is ("markdown", text)."""
        from nbformat import v4

        made = v4.new_notebook(cells=[
            v4.new_code_cell(cell) if isinstance(cell, str) else v4.new_markdown_cell(cell[1])
            for cell in cells])
        made.metadata["kernelspec"] = {
            "name": "python3", "display_name": "Python 3", "language": "python",
        }  # fmt: skip
        (self.work / name).write_text(json.dumps(made), encoding="utf-8")

    def open(self, page, name, path="lab/workspaces/{name}/tree/"):
        """Open a notebook in a page and wait until its kernel is."""
        page.goto(self.url(path.format(name=name.partition(".")[0]) + name))
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_function(f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'")

    def run_all(self, page):
        """Run all cells, without waiting for them."""
        page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")

    def wait_for_cells(self, page, seconds=300):
        """Wait until all cells have run, or one has failed: its error is the test's then."""
        page.wait_for_function(f"""() => {{
            const cells = Array.from({NOTEBOOK}.content.model.cells);
            return cells.some((cell) => ({FAILED})(cell)) || cells.every(
                (cell) => cell.type !== "code" || cell.executionCount !== null);
        }}""", timeout=1000 * seconds)
        errors = page.evaluate(f"Array.from({NOTEBOOK}.content.model.cells).map({FAILED})")
        for number, error in enumerate(errors):
            assert not error, f"cell {number}: {error}"
