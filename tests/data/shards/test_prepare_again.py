"""A prepare that was stopped resumes from its finished shards, to the same bytes, and only with the same settings."""

import json

import pytest
from prepared import contents
from said import listen
from test_prepare import make_documents, prepare

from keras_bert.core.errors import UserError
from keras_bert.core.files import files_below, list_folder, open_file
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepared_folder import is_prepared

OPTIONS = {"shard_megabytes": 0.001, "inputs": [["a.txt", 10], ["b.txt", 20]], "workers": 1}
# Among them are duplicates, and documents with no tokens left.
DOCUMENTS = [text for n, text in enumerate(make_documents(100)) for text in [text, "\u200b" * n, text][: 1 + n % 3]]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches so small that shards are finished before the text ends."""
    monkeypatch.setattr("keras_bert.data.shards.prepare.BATCH_CHARACTERS", 500)
    monkeypatch.setattr("keras_bert.data.shards.prepare._BATCHES_WORTH_PROCESSES", 1)


def stop_after(folder, count, documents=DOCUMENTS, **options):
    def stopped():
        yield from documents[:count]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(stopped(), folder, 0.3, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight") / "out"
    report = prepare(DOCUMENTS, folder, 0.3, **OPTIONS)
    return contents(folder), report


@pytest.mark.parametrize("counts", [[5], [199], [60, 20, 120]])
def test_stopped_anywhere_the_result_is_the_same(tmp_path, straight, counts):
    for count in counts:
        stop_after(tmp_path / "out", count)
        assert not (tmp_path / "out").exists() and not is_prepared(tmp_path / "out.partial")
    report = prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)
    assert (contents(tmp_path / "out"), report) == straight
    assert len(straight[0]) > 15 and report.dropped["no token in it"] and report.dropped["duplicate"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_finished_shards_are_not_made_again(tmp_path, monkeypatch):
    tokenized = []
    call = DocumentTokenizer.__call__
    monkeypatch.setattr(DocumentTokenizer, "__call__", lambda self, texts: tokenized.extend(texts) or call(self, texts))
    stop_after(tmp_path / "out", 180)
    tokenized.clear()
    said = listen()
    prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)
    assert 0 < len(tokenized) < 0.4 * len(DOCUMENTS)
    assert len(said) == 1 and "shards are finished" in said[0]


def test_other_settings_are_refused_and_nothing_is_lost(tmp_path):
    stop_after(tmp_path / "out", 180)
    before = contents(tmp_path / "out.partial")
    for change, told in (
        ({"shard_megabytes": 0.002}, "another shard_megabytes. Received: 0.001, now 0.002"),
        ({"inputs": [["a.txt", 10], ["b.txt", 21]]}, r"inputs. Received: \['b.txt', 20\], now \['b.txt', 21\]"),
        ({"inputs": [["a.txt", 10]]}, "another inputs. Received: 2 in all, now 1"),
    ):
        with pytest.raises(UserError, match=told):
            prepare(DOCUMENTS, tmp_path / "out", 0.3, **{**OPTIONS, **change})
    assert contents(tmp_path / "out.partial") == before


def test_a_setting_that_is_the_default_again_is_refused_too(tmp_path):
    """Shards of texts read with and without a preceding space would be mixed."""
    stop_after(tmp_path / "out", 180)
    record = tmp_path / "out.partial" / "state.json"
    state = json.loads(record.read_text())
    state["settings"]["prefix_space"] = False
    record.write_text(json.dumps(state))
    with pytest.raises(UserError, match="another prefix_space. Received: False, now None"):
        prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)


def test_a_finished_shard_that_was_altered_is_refused(tmp_path):
    stop_after(tmp_path / "out", 180)
    path = tmp_path / "out.partial/train/00000.tokens"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="train/00000.tokens: is not the file .* Remove .*out.partial and start over"):
        prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"settings": {}})])
def test_a_record_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/state.json").write_text(content)
    with pytest.raises(UserError, match="state.json: is not the record|has shards of an unfinished"):
        prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["sides"].pop("train"),
        lambda state: state["sides"]["train"].pop("meta"),
        lambda state: state["sides"]["train"]["meta"].pop("shards"),
        lambda state: state["sides"]["train"].update(meta=[]),
        lambda state: state["sides"]["train"].update(documents="60"),
        lambda state: state["sides"]["train"]["meta"]["shards"][0].pop("sha256"),
        lambda state: state["sides"]["train"]["meta"].update(shards=["00000"]),
        lambda state: state.update(sides=[state["sides"]]),
        lambda state: state.update(settings=[]),
    ],
)
def test_a_record_of_another_form_is_refused(tmp_path, change):
    """It would end in a traceback."""
    stop_after(tmp_path / "out", 180)
    path = tmp_path / "out.partial/state.json"
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(UserError, match="state.json: is not the record of an unfinished prepare. Remove .*out.partial"):
        prepare(DOCUMENTS, tmp_path / "out", 0.3, **OPTIONS)


def stored_contents(folder):
    return {path[len(folder) + 1 :]: open_file(path).read() for path in files_below(folder)}


@pytest.mark.parametrize("counts", [[1], [60, 199]])
def test_stopped_in_a_store_the_result_is_the_same(straight, counts):
    """A store copies every file to rename a folder, so the work is done in place, but must not pass for done."""
    folder = f"ram://prepare-again-{len(counts)}"
    for count in counts:
        stop_after(folder, count)
        assert not is_prepared(folder) and "vocab.txt" not in list_folder(folder)
    if len(counts) > 1:
        with pytest.raises(UserError, match="another shard_megabytes"):
            prepare(DOCUMENTS, folder, 0.3, **{**OPTIONS, "shard_megabytes": 0.002})
    report = prepare(DOCUMENTS, f"{folder}/", 0.3, **OPTIONS)
    assert (stored_contents(folder), report) == straight
    with pytest.raises(UserError, match="needs a new or empty folder"):
        prepare(DOCUMENTS, folder, 0.3, **OPTIONS)


def test_killed_in_a_store_before_the_first_shard_is_whole(monkeypatch):
    """Nothing is tidied up then, and the next start must not take the folder for another program's."""
    folder = "ram://prepare-again-killed"
    with monkeypatch.context() as patch:
        patch.setattr("keras_bert.data.shards.prepared_folder._clear", lambda path: None)
        stop_after(folder, 5)
    with open_file(f"{folder}/train/00000.tokens", "wb") as stream:
        stream.write(b"half a file")
    prepare(DOCUMENTS, folder, 0.3, **{**OPTIONS, "shard_megabytes": 0.002})
    assert is_prepared(folder) and "state.json" not in list_folder(folder)


@pytest.mark.parametrize("store", [False, True])
def test_a_second_prepare_of_the_same_folder_is_refused_and_leaves_it_alone(tmp_path, straight, store):
    """It would remove the first one's half-written shards."""
    folder = "ram://prepare-again-twice" if store else str(tmp_path / "out")
    refused = []

    def documents():
        for number, document in enumerate(DOCUMENTS):
            if number == 100:
                with pytest.raises(UserError, match=f"{folder}: in use by process .*or give another --output"):
                    prepare(DOCUMENTS, folder, 0.3, **OPTIONS)
                refused.append(number)
            yield document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_bert.core.locks.RENEWED_EVERY", 0.1)
        patch.setattr("keras_bert.core.locks._LOOKS_EVERY", 0.05)
        report = prepare(documents(), folder, 0.3, **OPTIONS)
    assert refused and (stored_contents(folder), report) == straight
    assert store or [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_shards_is_not_written_by_who_lost_it(monkeypatch):
    """A process that stalled while another took over its lease must not go on in the same folder."""
    folder = "ram://prepare-again-lost"
    monkeypatch.setattr("keras_bert.core.locks.Lease.lost_to", "process 7 on elsewhere")
    with pytest.raises(UserError, match=f"{folder}: taken over by process 7"):
        prepare(DOCUMENTS, folder, 0.3, **OPTIONS)


@pytest.mark.slow
def test_killed_at_any_change_of_the_disk_the_result_is_the_same(tmp_path, killed_at):
    """Killed between the renaming and the removal of the record, the folder would be taken for another program's."""

    def work(name):
        (tmp_path / name).mkdir(exist_ok=True)
        return lambda: prepare(DOCUMENTS[:60], tmp_path / name / "out", 0.3, **OPTIONS)

    count = killed_at(10**6, work("straight"))
    for instant in (count // 2, *range(count - 6, count)):
        assert killed_at(instant, work(str(instant))) is None
        out = tmp_path / str(instant) / "out"
        if not is_prepared(out) or (out / "state.json").exists():  # Otherwise the work was done, except for the lock.
            work(str(instant))()
        assert contents(out) == contents(tmp_path / "straight" / "out"), instant
