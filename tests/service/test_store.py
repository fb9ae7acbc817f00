"""Models are looked up where they lie, and kept as far as there is room."""

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import checkpoint_files
from compute.errors import ModelError
from service.errors import NAME_RULE, UnknownModel
from service.settings import Settings
from service.storage import kept, opening
from service.storage import store as store_module
from service.storage.kept import Kept
from service.storage.store import Store

pytestmark = pytest.mark.usefixtures("look_each_time")

MakeStore = Callable[..., Store]
GGUF = Path(__file__).parents[1] / "parity_gguf" / "gpt2.gguf"
VOCAB = 3000
CONFIG = {**checkpoint_files.LLAMA, "vocab_size": VOCAB}


def arrays_of(seed: int) -> dict[str, np.ndarray]:
    """Weights that take more than what is held of their header."""
    arrays = checkpoint_files.llama_arrays(seed)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        arrays[name] = np.resize(arrays[name], (VOCAB, 6))
    return arrays


MODEL_BYTES = 4 * sum(array.size for array in arrays_of(0).values())


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Six models of two blocks: m0 to m5."""
    for number in range(6):
        checkpoint_files.folder(tmp_path / f"m{number}", CONFIG, arrays_of(number))
    return tmp_path


def opened_bytes(store: Store, name: str) -> int:
    store.get(name)
    return store.kept.bytes


def use(store: Store, name: str) -> object:
    """Run a model: every part of its weights is fetched."""
    checkpoint = store.get(name)
    store.make_room(MODEL_BYTES, checkpoint, "float32")
    weights = store.packed(checkpoint, "float32")
    _ = [block.attention for block in weights.blocks], weights.W_E, weights.W_U, weights.final_norm
    store.settle(checkpoint, "float32")
    return weights


def test_weights_count_what_was_fetched_and_views_once(folders: Path) -> None:
    weights = Store(Settings(models=(folders,)))
    checkpoint = weights.get("m0")
    packed = weights.packed(checkpoint, "float32")
    assert packed.held_bytes() == 0
    embedding = packed.W_E
    assert packed.held_bytes() == embedding.nbytes
    _ = packed.blocks[0]
    assert embedding.nbytes < packed.held_bytes() < MODEL_BYTES
    use(weights, "m0")
    assert packed.held_bytes() == MODEL_BYTES


def test_model_is_looked_for_again_after_a_moment(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "FRESH_SECONDS", 60.0)
    store = Store(Settings(models=(folders,)))
    before = store.get("m0")
    shutil.rmtree(folders / "m0")
    assert store.get("m0") is before
    store.kept.forget("m0")  # as an upload of that name does
    with pytest.raises(UnknownModel):
        store.get("m0")
    before = store.get("m1")
    shutil.rmtree(folders / "m1")
    monkeypatch.setattr(kept, "FRESH_SECONDS", -1.0)
    with pytest.raises(UnknownModel):
        store.get("m1")


def test_model_is_kept_while_there_is_room(folders: Path) -> None:
    store = Store(Settings(models=(folders,)))
    assert use(store, "m0") is use(store, "m0")
    assert store.get("m0") is store.get("m0")


def test_what_was_not_used_for_longest_goes_first(folders: Path) -> None:
    opened = opened_bytes(Store(Settings(models=(folders,))), "m0")
    most = 3 * (opened + MODEL_BYTES)
    store = Store(Settings(models=(folders,), kept_bytes=most, memory_bytes=1))
    first, second = use(store, "m0"), use(store, "m1")
    use(store, "m2")
    assert use(store, "m0") is first
    use(store, "m3")
    assert store.kept.bytes <= most
    assert use(store, "m0") is first
    assert use(store, "m1") is not second


def test_model_beyond_the_budget_is_used_and_not_kept(folders: Path) -> None:
    opened = opened_bytes(Store(Settings(models=(folders,))), "m0")
    store = Store(Settings(models=(folders,), kept_bytes=opened + 100))
    checkpoint = store.get("m0")
    weights = use(store, "m0")
    assert store.kept.bytes == opened
    assert use(store, "m0") is not weights
    assert store.get("m0") is checkpoint


def test_nothing_is_kept_with_a_budget_of_nothing(folders: Path) -> None:
    store = Store(Settings(models=(folders,), kept_bytes=0))
    use(store, "m0")
    assert store.kept.bytes == 0


def test_request_that_needs_room_gets_it_but_for_its_own_model(folders: Path) -> None:
    store = Store(Settings(models=(folders,), kept_bytes=10 * MODEL_BYTES, memory_bytes=1))
    own, checkpoint = use(store, "m0"), store.get("m0")
    use(store, "m1")
    store.make_room(10 * MODEL_BYTES - 1, store.get("m0"), "float32")
    assert store.packed(checkpoint, "float32") is own
    assert store.kept.stamps().keys() == {"m0"}


def test_model_that_goes_while_it_is_used_is_used_to_the_end(folders: Path) -> None:
    store = Store(Settings(models=(folders,)))
    checkpoint = store.get("m0")
    weights = store.packed(checkpoint, "float32")
    store.kept.forget("m0")
    assert weights.blocks[1].attention.W_QKV.size
    assert store.packed(checkpoint, "float32") is not weights  # and is not kept
    assert store.kept.bytes == 0


def test_listing_opens_each_model_once_until_it_changes(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count: list[Path] = []
    real = store_module.opened
    monkeypatch.setattr(store_module, "opened", lambda path: count.append(path) or real(path))
    store = Store(Settings(models=(folders,)))
    lines, broken = store.lines()
    assert (len(lines), broken, len(count)) == (9, {}, 9)
    assert store.lines()[0] == lines
    assert len(count) == 9
    (folders / "m1" / "README.md").write_text("# changed")
    store.lines()
    assert [path.name for path in count[9:]] == ["m1"]
    shutil.rmtree(folders / "m2")
    assert len(store.lines()[0]) == 8


def test_folder_that_breaks_the_loader_itself_hides_no_other(
    folders: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = store_module.opened

    def failing(path: Path) -> object:
        if path.name == "m3":
            raise ZeroDivisionError
        return real(path)

    monkeypatch.setattr(store_module, "opened", failing)
    lines, broken = Store(Settings(models=(folders,))).lines()
    assert len(lines) == 8
    assert broken == {"m3": "It cannot be opened; the service's log says why."}
    assert "m3 cannot be opened." in caplog.text


def test_gguf_files_are_models_by_folder_and_by_stem(folders: Path) -> None:
    (folders / "one.gguf").write_bytes(b"GGUF")
    (folders / "two").mkdir()
    (folders / "two" / "any.gguf").write_bytes(b"GGUF")
    (folders / "three").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (folders / "three" / name).write_bytes(b"GGUF")
    shutil.copy(GGUF, folders / "four.gguf")
    (folders / "five").mkdir()
    shutil.copy(GGUF, folders / "five" / "any.gguf")
    (folders / "six.gguf").mkdir()
    store = Store(Settings(models=(folders,)))
    lines, broken = store.lines()
    assert {"four", "five"} <= {line.name for line in lines}
    assert store.get("four").content == store.get("five").content
    assert store.find("four.gguf") is store.find("six") is None
    assert broken.keys() == {"one", "two", "three"}
    assert "just one" in broken["three"]


def test_what_is_no_model_is_not_listed(folders: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folders / ".git").mkdir()
    (folders / "notes").mkdir()
    (folders / "notes" / "notes.txt").write_text("")
    (folders / "file.txt").write_text("")
    (folders / "bad name.gguf").write_text("")
    store = Store(Settings(models=(folders,)))
    assert len(store.names()) == 9
    assert store.lines()[1] == {"bad name": NAME_RULE}
    assert caplog.records == []


def test_names_that_no_request_can_say_are_told_as_far_as_they_can_be_shown(
    folders: Path,
) -> None:
    for name in (b"two words", b"\xff.gguf", b"line\nbreak.gguf", b"one.gguf"):
        path = os.fsencode(folders) + b"/" + name
        if name.endswith(b".gguf"):
            Path(os.fsdecode(path)).touch()
        else:
            shutil.copytree(folders / "m0", os.fsdecode(path))
    _, broken = Store(Settings(models=(folders,))).lines()
    told = ["two words", "\\udcff", "line\\nbreak"]
    assert {name: broken[name] for name in told} == dict.fromkeys(told, NAME_RULE)
    assert broken.keys() == {*told, "one"}


def warnings(caplog: pytest.LogCaptureFixture, *models: Path) -> list[str]:
    """What is warned of at the start with these, less the setting's name before each."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "glassblock"):
        Store(Settings(models=models))
    return [record.message.removeprefix("GLASSBLOCK_MODELS: ") for record in caplog.records]


def test_folder_of_models_may_be_one_model_itself(
    folders: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_files.folder(folders / "m1" / "inner", CONFIG, arrays_of(1))
    monkeypatch.chdir(folders / "m3")
    shutil.copy(GGUF, folders / "alone.gguf")
    named = (folders / "m1", Path("."), folders / "alone.gguf", folders / "m1" / ".." / "m2")
    assert warnings(caplog, *named) == []
    store = Store(Settings(models=named))
    assert store.names() == ["alone", "eiffel-toy", "induction", "letter-sort", "m1", "m2", "m3"]
    assert store.lines()[1] == {}
    assert store.get("m1").content != store.get("m3").content
    found = store.find("alone")
    assert found is not None
    assert (found.origin, found.path) == ("folder", folders / "alone.gguf")
    assert store.find("m4") is store.find("inner") is store.find("alone.gguf") is None


def test_model_itself_is_called_by_the_link_that_leads_to_it(folders: Path) -> None:
    (folders / "linked").symlink_to(folders / "m4")
    assert "linked" in Store(Settings(models=(folders / "linked",))).names()


def test_model_itself_with_a_name_of_none_is_told(folders: Path) -> None:
    (folders / "m5").rename(folders / "m 5")
    store = Store(Settings(models=(folders / "m 5",)))
    assert store.lines()[1] == {"m 5": NAME_RULE}


def test_config_beside_gguf_files_alone_is_that_of_a_hub_and_no_model(folders: Path) -> None:
    (folders / "hub").mkdir()
    shutil.copy(GGUF, folders / "hub" / "small-q4.gguf")
    (folders / "hub" / "config.json").write_text('{"model_type": "gpt2"}')
    assert Store(Settings(models=(folders,))).get("hub").family == "gpt2"
    assert "small-q4" in Store(Settings(models=(folders / "hub",))).names()


def test_folder_without_a_model_is_warned_of_at_the_start(
    folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folders / "empty").mkdir()
    (folders / "file.txt").touch()
    assert warnings(caplog, folders) == []
    empty, *others = warnings(caplog, folders / "empty", folders / "nowhere", folders / "file.txt")
    assert empty.endswith(
        "empty' holds no model: that is a folder with a config.json, or a .gguf file."
    )
    assert [told.partition("' ")[2] for told in others] == [
        "is no folder of models, and no model."
    ] * 2


@pytest.mark.parametrize("name", ["", ".", "..", "../m0", "m0/../m0", "m0\0", "/m0", "x" * 65])
def test_no_name_leads_out_of_the_folders(folders: Path, name: str) -> None:
    store = Store(Settings(models=(folders / "m1",)))
    with pytest.raises(UnknownModel):
        store.get(name)


def test_stale_models_are_let_go_when_the_store_is_tidied(folders: Path) -> None:
    store = Store(Settings(models=(folders,)))
    use(store, "m0")
    use(store, "m1")
    shutil.rmtree(folders / "m0")
    store.tidy()
    assert store.kept.stamps().keys() == {"m1"}


def test_many_threads_use_models_in_turn_within_the_budget(folders: Path) -> None:
    most = 3 * MODEL_BYTES
    store = Store(Settings(models=(folders,), kept_bytes=most))
    failed: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for number in np.random.default_rng(seed).integers(0, 6, 40):
                use(store, f"m{number}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.kept.bytes <= most


def test_weights_of_another_opening_are_not_mixed_up(folders: Path) -> None:
    store = Store(Settings(models=(folders,)))
    old = store.get("m0")
    weights = store.packed(old, "float32")
    checkpoint_files.folder(folders / "m0", CONFIG, arrays_of(9))
    new = store.get("m0")
    assert new is not old
    assert store.packed(new, "float32") is not weights
    assert isinstance(store.kept, Kept)


def test_folder_that_may_not_be_looked_into_is_told_and_hides_no_other(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access

    def closed(path: str | os.PathLike[str], mode: int) -> bool:
        return Path(path).name != "m1" and access(path, mode)

    monkeypatch.setattr(os, "access", closed)
    store = Store(Settings(models=(folders,)))
    lines, broken = store.lines()
    assert {"m0", "m2"} <= {line.name for line in lines}
    assert broken == {"m1": "The service may not look into m1."}
    with pytest.raises(ModelError, match="may not look into m1"):
        store.get("m1")


def test_file_that_may_not_be_read_makes_a_broken_model(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "closed", str(path))

    monkeypatch.setattr(opening.folder, "load", refuse)
    with pytest.raises(ModelError, match="may not read all of m1"):
        Store(Settings(models=(folders,))).get("m1")
