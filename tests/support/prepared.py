"""`prepare` for documents that are in no file, and what it wrote."""

from types import SimpleNamespace

from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepare import ShardSettings
from keras_bert.data.shards.prepare import prepare as prepare_text
from keras_bert.text.vocabulary import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "dog", "saw", "a", "bird"]
VOCABULARY = Vocabulary([*SPECIAL, ".", *WORDS, *"0123456789", *(f"##{n}" for n in range(10))])


def shard_settings(vocabulary, lower_case, share, shard_megabytes=16.0, **marks):
    return ShardSettings(DocumentTokenizer(vocabulary, lower_case, **marks), share, shard_megabytes)


def prepare(documents, folder, settings, inputs=(), **options):
    text = SimpleNamespace(
        documents=lambda: documents, fingerprint=lambda: inputs, settings=dict, record=dict, local_files=list
    )
    return prepare_text(text, settings, folder, **options)


def contents(folder):
    """`{path: bytes}` of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
