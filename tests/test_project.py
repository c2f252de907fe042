"""What stands around the code: workflows, citation, addresses, changelog, what commits run."""

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = re.search(r'^version = "(.*)"', PROJECT, re.M)[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: what the jobs that publish may do, more than read
PUBLISHES = {("release", "publish"): {"id-token": "write"},
             ("site", "site"): {"contents": "read", "pages": "write", "id-token": "write"}}
#: commands of the systems that workflows run on, and of packages that they install there
KNOWN = {"docker", "jupyter-repo2docker", "npm", "python", "sudo", ".venv/bin/python"}


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def verbs():
    """The words that dev.py takes, from its source."""
    tree = ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"))
    tables = {n.targets[0].id: n.value for n in tree.body
              if isinstance(n, ast.Assign) and n.targets[0].id in ("VERBS", "ALONE")}
    words = {e.value for e in tables["VERBS"].elts if isinstance(e, ast.Constant)}
    return words | {key.value for key in tables["ALONE"].keys}


def jobs(path):
    return read(path)["jobs"].items()


def commands(path):
    """Every command of a workflow, as words."""
    for _, job in jobs(path):
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                for command in line.split("&&") if '"' not in line else [line]:
                    yield shlex.split(command)


def test_versions_of_python_are_those_of_the_classifiers():
    said = re.findall(r"Python :: (3\.\d+)", PROJECT)
    tested = read(ROOT / ".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert tested["python"] == said
    assert f'requires-python = ">={said[0]}"' in PROJECT
    assert {name.split("-")[0] for name in tested["os"]} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_is_whole_and_its_commands_exist(path):
    found = read(path)
    assert found["name"] and found[True]  # the key `on` is a truth value of YAML
    assert found["permissions"] == {"contents": "read"}
    for name, job in jobs(path):
        assert job["runs-on"] and job["steps"], name
        assert "timeout-minutes" in job or name == "publish"
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
            assert "@" in step.get("uses", "@"), "an action without a version"
    for words in commands(path):
        assert words[0] in KNOWN or (ROOT / words[0]).is_file(), words
        if words[:2] == ["python", "dev.py"]:
            assert words[2] in verbs(), words
            for word in words[3:]:
                assert "/" not in word or (ROOT / word).exists(), word


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    for path in WORKFLOWS:
        for name, job in jobs(path):
            assert job.get("permissions") == PUBLISHES.get((path.stem, name))


def test_what_commits_run_exists():
    (repo,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    for hook in repo["hooks"]:
        program, script, verb = hook["entry"].split()
        assert (program, script) == ("python", "dev.py") and verb in verbs()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_commands_of_a_page_exist(page):
    named = re.findall(r"`python dev\.py (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    assert named and set(named) <= verbs()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_dev_says_what_it_does_with_each_word():
    doc = ast.get_docstring(ast.parse((ROOT / "dev.py").read_text(encoding="utf-8")))
    assert set(re.findall(r"python dev\.py (\w+)", doc)) == verbs()


def test_the_citation_is_whole_and_of_this_version():
    cited = read(ROOT / "CITATION.cff")
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "software"
    assert cited["message"] and cited["title"] and cited["abstract"]
    assert all(author.get("name") for author in cited["authors"])
    assert cited["version"] == VERSION and cited["license"] == "Apache-2.0"
    assert set(cited) <= {"cff-version", "message", "type", "title", "abstract", "version",
                          "license", "repository-code", "authors", "keywords"}
    assert f'Repository = "{cited["repository-code"]}"' in PROJECT


def test_all_addresses_of_the_project_are_in_one_repository():
    section = PROJECT.partition("[project.urls]\n")[2].partition("\n\n")[0]
    urls = dict(re.findall(r'^(\w+) = "(.*)"', section, re.M))
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    for url in urls.values():
        assert url.startswith(urls["Repository"])
        inside = re.sub(r"^/(?:tree|blob)/main/", "", url.removeprefix(urls["Repository"]))
        assert inside in ("", "/issues") or (ROOT / inside).exists()


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
                         ids=lambda p: p.name)
def test_an_issue_template_asks_for_something(path):
    found = read(path)
    if path.stem == "config":
        return
    assert found["name"] and found["description"]
    assert len({part["id"] for part in found["body"]}) == len(found["body"])
    for part in found["body"]:
        assert part["type"] in ("textarea", "input") and part["attributes"]["label"]


def test_a_tag_is_compared_with_version_and_changelog(monkeypatch, tmp_path, capsys):
    sys.path.insert(0, str(ROOT))
    import dev

    for name in ("pyproject.toml", "mlc_lab/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    changes = tmp_path / "CHANGELOG.md"
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    changes.write_text("## [Unreleased]\n", encoding="utf-8")
    assert dev.release(f"v{VERSION}") == 1 and "no section" in capsys.readouterr().out
    changes.write_text(f"## [{VERSION}] - 2027-01-31\n", encoding="utf-8")
    assert dev.release("v9.9") == 1 and "the tag is v9.9" in capsys.readouterr().out
    assert dev.release(f"v{VERSION}") == 0


def test_the_changelog_is_in_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, re.M)
    assert heads[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in heads[1:])
    assert set(re.findall(r"^### (.*)$", text, re.M)) <= {
        "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("there, status, ran", [
    (True, 0, [["-m", "mlc_lab.cli", "lab", "--port=9"]]),
    (False, 0, [["-m", "pip", "install", "torch"], ["-m", "mlc_lab.cli", "lab", "--port=9"]]),
    (False, 1, [["-m", "pip", "install", "torch"]]),
], ids=["it is there", "it is not", "pip cannot install it"])
def test_lab_with_torch_installs_it_where_it_is_missing(monkeypatch, there, status, ran):
    """What would be run, without the network: PyTorch is asked for, then JupyterLab opens."""
    import dev

    asked = []

    def run(*words, **_):
        if words[0] == "-c":  # whether the environment has it
            assert "find_spec('torch')" in words[1]
            return int(not there)
        asked.append(list(words))
        return status if "pip" in words else 0

    monkeypatch.setattr(dev, "run", run)
    monkeypatch.setattr(dev, "make_environment", lambda: None)
    monkeypatch.setattr(dev, "install", lambda: None)
    monkeypatch.setattr(sys, "argv", ["dev.py", "lab", "--torch", "--port=9"])
    assert dev.main() == status and asked == ran
