"""A hostile pytorch_model.bin does nothing but be refused, in one line that names the file."""

import io
import os
import pickle
import random
import resource
import struct
import time
import zipfile

import pytest
from goldens import COMMITTED

from keras_bert.checkpoints.torch_file import TorchFile
from keras_bert.core.errors import UserError

CANARY = "canary"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Whatever runs would leave a file here."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not os.path.exists(CANARY)


def archive(pickled, entries=None, compression=zipfile.ZIP_STORED):
    """An archive as PyTorch writes it, with a storage of 4 floats."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as written:
        written.writestr("archive/data.pkl", pickled)
        for name, data in (entries or {"archive/data/0": bytes(16), "archive/version": b"3\n"}).items():
            written.writestr(name, data)
    return content.getvalue()


def refusal(content):
    with open("pytorch_model.bin", "wb") as stream:
        stream.write(content)
    with pytest.raises(UserError) as refused:
        TorchFile("pytorch_model.bin")
    message = str(refused.value)
    assert message.startswith("pytorch_model.bin: ") and "\n" not in message and len(message) < 400
    return message


def each(cases):
    """Runs a test once for each `{name: (bytes, message)}`."""
    return pytest.mark.parametrize("pickled, message", cases.values(), ids=cases.keys())


class Calls:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def short(text):
    return b"\x8c" + bytes([len(text)]) + text.encode()


RUN = short(f"touch {CANARY}")
STORAGE = b"(" + short("storage") + named("torch", "FloatStorage") + short("0") + short("cpu") + b"K\x04tQ"


def tensor(offset=b"K\x00", shape=b"K\x02K\x02\x86", strides=b"K\x02K\x01\x86", storage=STORAGE):
    """A state dict of one tensor `x`, as opcodes."""
    built = named("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + offset + shape + strides + b"\x89}tR"
    return b"\x80\x02}" + short("x") + built + b"s."


def test_the_tensor_that_all_others_here_are_made_from_is_read():
    with open("pytorch_model.bin", "wb") as stream:
        stream.write(archive(tensor()))
    assert TorchFile("pytorch_model.bin").value("x").tolist() == [[0.0, 0.0], [0.0, 0.0]]


@each(
    {
        "reduce": (pickle.dumps({"x": Calls(os.system, f"touch {CANARY}")}, 2), "names posix.system"),
        "stack_global": (pickle.dumps({"x": Calls(os.system, f"touch {CANARY}")}, 4), "names posix.system"),
        "builtins": (pickle.dumps(Calls(eval, f"open({CANARY!r}, 'w')"), 2), "names __builtin__.eval"),
        "inst": (b"(" + RUN + b"iposix\nsystem\n.", "opcode INST"),
        "obj": (b"(" + named("posix", "system") + RUN + b"o.", "names posix.system"),
        "obj_of_a_known_global": (b"(" + named("torch", "Size") + RUN + b"o.", "opcode OBJ"),
        "newobj": (named("torch", "Size") + RUN + b"\x85\x81.", "opcode NEWOBJ"),
        "newobj_ex": (named("torch", "Size") + RUN + b"\x85}\x92.", "opcode NEWOBJ_EX"),
        "extension": (b"\x82\x01.", "opcode EXT1"),
        "persistent_text": (b"Pstorage\n.", "opcode PERSID"),
        "persistent_number": (b"K\x01Q.", "not a storage"),
        "persistent_module": (b"(" + short("module") + RUN + b"tQ.", "not a storage"),
        "persistent_class": (STORAGE.replace(b"FloatStorage", b"Size") + b".", "something other than its class"),
        "storage_of_no_float": (STORAGE.replace(b"FloatStorage", b"ComplexFloatStorage") + b".", "ComplexFloatStorage"),
        "setstate": (named("torch", "Size") + b"}" + short("__setstate__") + RUN + b"sb.", "needs a dict on the stack"),
        "attributes_of_a_tensor": (tensor()[:-2] + b"}bs.", "needs a dict on the stack"),
        "calling_a_string": (RUN + b")R.", "calls a str"),
        "calling_a_type": (named("torch", "FloatStorage") + b")R.", "calls torch.FloatStorage"),
        "two_words": (named("torch", "Size evil") + b".", "names torch.Size evil"),
        "a_line_break": (short("os\n") + short("system") + b"\x93.", r"names os\n.system"),
        "buffers": (b"\x97.", "opcode NEXT_BUFFER"),
        "sets": (b"\x8f.", "opcode EMPTY_SET"),
        "dup": (b"N2.", "opcode DUP"),
        "pop_of_nothing": (b"\x85.", "more than is on the stack"),
        "pop_of_a_mark": (b"(s.", "more than is on the stack"),
        "no_mark": (b"t.", "needs a mark"),
        "memo_of_nothing": (b"h\x07.", "never written"),
        "unfinished": (tensor()[:-1], "not a complete pickle"),
        "empty": (b"", "not a complete pickle"),
        "key_of_tuples": (b"})K\x01s.", "has a tuple as a key"),
        "no_tensor": (b"}.", "no tensor in it"),
        "no_dictionary": (b"K\x01.", "needs a dictionary of tensors"),
        "offset": (tensor(offset=b"K\x01"), "does not hold"),
        "negative_offset": (tensor(offset=b"J\xff\xff\xff\xff"), "needs a number of 0 or more"),
        "true_as_offset": (tensor(offset=b"\x88"), "needs a number of 0 or more"),
        "shape": (tensor(shape=b"K\x03K\x02\x86"), "does not hold"),
        "strides": (tensor(strides=b"K\x03K\x01\x86"), "does not hold"),
        "negative_strides": (tensor(strides=b"J\xff\xff\xff\xffK\x01\x86"), "needs a number of 0 or more"),
        "strides_of_0": (tensor(shape=b"J\x00\x00\x00\x40K\x02\x86", strides=b"K\x00K\x01\x86"), "does not hold"),
        "more_strides": (tensor(strides=b"K\x01K\x01K\x01\x87"), "more or fewer strides"),
        "overflow": (tensor(shape=b"\x8a\x08" + bytes(7) + b"\x20K\x08\x86"), "does not hold"),
        "no_64_bits": (tensor(shape=b"\x8a\x09" + bytes(8) + b"\x01K\x02\x86"), "needs a number of 0 or more"),
        "dimensions": (tensor(shape=b"(" + b"K\x01" * 65 + b"t"), "at most 8"),
        "count": (tensor(storage=STORAGE.replace(b"K\x04", b"J\x00\x00\x00\x10")), "ends early"),
        "another_storage": (tensor(storage=STORAGE.replace(short("0"), short("7"))), "lacks the storage 7"),
        "path_as_storage": (tensor(storage=STORAGE.replace(short("0"), short("../0"))), "lacks the storage ../0"),
        "arguments": (named("torch._utils", "_rebuild_tensor_v2") + b")R.", "0 arguments"),
    }
)
def test_what_is_not_of_a_state_dict_is_refused_by_name(pickled, message):
    refused = refusal(archive(pickled))
    assert message in refused
    if pickled[:1] == b"\x80":  # The same in the layout before PyTorch 1.6.
        head = [pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
        refusal(b"".join(head) + pickled + pickle.dumps(["0"], 2) + struct.pack("<q", 4) + bytes(15))


def test_pickles_that_grow_are_refused_in_little_time_and_memory():
    """Doubled lists and tuples, nesting without end, lengths of gigabytes: none of it is ever built or walked."""
    doubled = b"".join(b"q" + bytes([index]) + b"h" + bytes([index]) + b"\x86" for index in range(200))
    bombs = {
        "doubled_tuples": b"\x80\x02}N" + doubled + b"K\x01s.",
        "doubled_lists": b"\x80\x02" + b"]q\x00" + b"(" + b"h\x00" * 1000 + b"eh\x00" * 500 + b".",
        "nesting": b"\x80\x02N" + b"\x85" * 60_000 + b".",
        "opcodes": b"\x80\x02" + b"]" * 310_000 + b".",
        "string": b"\x80\x02X\xff\xff\xff\x7f" + bytes(1000),
        "long_string": b"\x80\x02X" + struct.pack("<I", 1 << 21) + b"a" * (1 << 21) + b".",
        "longer_string": b"\x80\x02X" + struct.pack("<I", 5 << 20) + b"a" * (5 << 20) + b".",
        "line": b"\x80\x02c" + b"a" * (8 << 20),
        "bytes8": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60),
        "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b".",
        "number": b"\x80\x02\x8b\xff\xff\xff\x7f" + bytes(100),
    }
    before, started_at = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for pickled in bombs.values():
        refusal(archive(pickled))
    assert time.process_time() - started_at < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024  # KiB


@each(
    {
        "nothing": (b"", "not a torch.save file"),
        "text": (b"<html>404</html>", "not a torch.save file"),
        "git_lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        "pickle_alone": (tensor(), "not a torch.save file"),
        "not_a_zip": (b"PK\x03\x04" + bytes(100), "not a complete archive"),
        "compressed": (archive(tensor(), compression=zipfile.ZIP_DEFLATED), "compressed"),
        "no_pickle": (archive(b"").replace(b"data.pkl", b"data.txt"), "not one from torch.save"),
        "two_pickles": (archive(tensor(), {"b/data.pkl": tensor()}), "not one from torch.save"),
        "big_endian": (archive(tensor(), {"archive/byteorder": b"big"}), "another byte order"),
        "climbing": (
            archive(tensor(), {"archive/data/../0": bytes(16), "../../data/0": bytes(16)}),
            "lacks the storage",
        ),
        "small_storage": (archive(tensor(), {"archive/data/0": bytes(15)}), "ends early"),
    }
)
def test_files_that_are_no_archive_of_torch_save(pickled, message):
    assert message in refusal(pickled)


def test_an_entry_that_claims_more_than_the_file_holds():
    content = bytearray(archive(tensor()))
    # The sizes in the directory are believed: 4 GB instead of 16 bytes, compressed and not.
    place = content.rindex(b"PK\x01\x02", 0, content.rindex(b"PK\x01\x02"))
    content[place + 20 : place + 28] = struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0)
    assert "ends early" in refusal(bytes(content))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as written:
        for name, data in (("a/data.pkl", tensor()), ("a/data/0", bytes(16)), ("a/data/0", bytes(16))):
            written.writestr(name, data)
    assert "holds two entries" in refusal(content.getvalue())


def test_a_directory_too_large_for_the_tensors_of_any_model():
    """Python's objects for a million entries would take a gigabyte."""
    content = bytearray(archive(tensor()))
    size = struct.unpack("<I", content[-10:-6])[0]
    filled = content[:-22] + bytes(5 << 20) + content[-22:]
    filled[-10:-6] = struct.pack("<I", size + (5 << 20))
    assert "bytes in one read" in refusal(bytes(filled))


@pytest.mark.parametrize("name", ["kinds.bin", "kinds_legacy.bin"])
def test_damaged_files_are_read_or_refused_and_nothing_else(name):
    """Whatever bytes are changed, cut off or repeated: the error is a UserError, and a value lies inside the file."""
    with open(os.path.join(COMMITTED, "torch_save", name), "rb") as stream:
        whole = stream.read()
    chance = random.Random(0)
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(damaged))
            kind = chance.randrange(4)
            if kind == 0:
                del damaged[place : place + chance.randrange(1, 60)]
            elif kind == 1:
                damaged[place:place] = damaged[place : place + chance.randrange(1, 60)]
            else:
                damaged[place] = chance.randrange(256)
        with open("damaged.bin", "wb") as stream:
            stream.write(damaged)
        try:
            file = TorchFile("damaged.bin")
            sums = [file.value(tensor).sum() for tensor in file.names if file.value(tensor) is not None]
            outcomes.add(bool(sums))
        except UserError as error:
            assert str(error).startswith("damaged.bin: ")
            outcomes.add(None)
    assert outcomes >= {True, None}
