"""From the texts of documents to token ids, sentence by sentence, in this process or in several."""

import contextlib
import hashlib
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing import connection
from typing import Any, TypeVar

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.runtime import stderr_withheld
from keras_bert.data.corpus.formats import AnnotatedText
from keras_bert.data.shards.shard_format import TokenizedDocuments, token_dtype
from keras_bert.data.windows import offsets
from keras_bert.text.marks import BEGINS, PhraseMatcher, continuation_marks, marks_of_ranges
from keras_bert.text.sentences import split_sentences
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.vocabulary import Vocabulary

_log = logging.getLogger(__name__)

BATCH_CHARACTERS = 250_000  # In the documents that are tokenized at a time.


class DocumentTokenizer:
    """Splits documents into sentences and sentences into pieces.

    TensorFlow is imported at the first call, so that an object is cheap to send to another process.

    Args:
        vocabulary, lower_case: as for `make_tokenizer`.
        word_marks: `"jieba"` to mark Chinese words, or None.
        phrase_tags: labels; the words of an `AnnotatedText` with one of them are marked as phrases, unless `phrases`
            has marked them already.
        prefix_space: see `TokenizerSettings`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        lower_case: bool,
        word_marks: str | None = None,
        phrases: Sequence[str] = (),
        phrase_tags: Sequence[str] = (),
        prefix_space: bool = True,
    ):
        self.vocabulary = vocabulary
        self.lower_case = bool(lower_case)
        self.word_marks = word_marks
        self.phrases = phrases
        self.phrase_tags = phrase_tags
        self.prefix_space = prefix_space
        self._matcher: PhraseMatcher | None = None
        self._tokenize: Callable | None = None

    def __call__(self, documents: Sequence[str]) -> TokenizedDocuments:
        """Tokenizes documents whose paragraphs are separated by blank lines."""
        if self._tokenize is None:
            self._tokenize = self._graph()
        sentences = [
            document.sentences if isinstance(document, AnnotatedText) else split_sentences(document)
            for document in documents
        ]
        texts = [sentence for document in sentences for sentence in document]
        tokens, splits, starts = (array.numpy() for array in self._tokenize(texts))
        lengths = np.diff(splits)
        continuations = None
        if self.word_marks:
            continuations = continuation_marks(texts, tokens, lengths, starts, self.vocabulary)
        is_filled = lengths > 0
        document_splits = offsets([len(document) for document in sentences])
        filled = np.diff(offsets(is_filled)[document_splits])
        return TokenizedDocuments(
            tokens.astype(token_dtype(len(self.vocabulary))),
            lengths[is_filled].astype(np.int32),
            filled.astype(np.int32),
            (np.diff(document_splits) - filled).astype(np.int32),
            continuations,
            self._phrase_marks(documents, sentences, tokens, lengths, starts),
        )

    def phrase_record(self) -> dict[str, Any] | None:
        """The record of the phrases for `meta.json`; None if there are none."""
        return phrase_record(self.phrases, self.phrase_tags) if self.phrases or self.phrase_tags else None

    def _phrase_marks(
        self,
        documents: Sequence[str],
        sentences: Sequence[Sequence[str]],
        tokens: np.ndarray,
        lengths: np.ndarray,
        starts: np.ndarray,
    ) -> np.ndarray | None:
        """uint8 `[tokens]`; None if there is nothing to mark."""
        if not self.phrases and not self.phrase_tags:
            return None
        marks = np.zeros(len(tokens), np.uint8)
        if self.phrases:
            if self._matcher is None:
                self._matcher = self._phrase_matcher()
            from keras_bert.text.characters import continues_word  # Imports TensorFlow.

            marks = self._matcher.marks(tokens, lengths, continues_word(self.vocabulary, tokens).numpy())
        if self.phrase_tags:
            ranges: list[list[tuple[int, int]]] = []
            for document, texts in zip(documents, sentences):
                words = document.words if isinstance(document, AnnotatedText) else [[] for _ in texts]
                ranges += [[(start, end) for start, end, tag in row if tag in self.phrase_tags] for row in words]
            tagged = marks_of_ranges(ranges, lengths, starts)
            is_free = (marks == 0) & ~_touched(tagged, marks)
            marks = np.where(is_free, tagged, marks)
        return marks

    def _phrase_matcher(self) -> PhraseMatcher:
        assert self._tokenize is not None
        # Without a space before each text, byte-level BPE has other pieces for its first word than elsewhere.
        spaced = [] if self.prefix_space else [f" {phrase}" for phrase in self.phrases]
        ids, splits, _ = (array.numpy() for array in self._tokenize([*self.phrases, *spaced]))
        rows = [ids[start:end].tolist() for start, end in zip(splits, splits[1:])]
        # [UNK] would match every unknown word.
        return PhraseMatcher(row for row in rows if self.vocabulary.unk_id not in row)

    def _graph(self) -> Callable:
        with stderr_withheld():
            import tensorflow as tf

            from keras_bert.text.tokenizers import make_tokenizer

            tokenizer = make_tokenizer(
                self.vocabulary, TokenizerSettings(self.lower_case, prefix_space=self.prefix_space)
            )

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
                if not self.word_marks and not self.phrase_tags:
                    ids = tokenizer.tokenize(texts)
                    return ids.values, ids.row_splits, tf.zeros([0], tf.int32)
                ids, starts, _ = tokenizer.tokenize_with_offsets(texts)
                return ids.values, ids.row_splits, starts.values

            tokenize(tf.zeros([0], tf.string))
        return lambda texts: tokenize(tf.constant(texts, tf.string, [len(texts)]))


def phrase_record(phrases: Sequence[str], tags: Sequence[str] = ()) -> dict[str, Any]:
    """The record for `meta.json` of the phrases, and of the tags whose words are marked as phrases."""
    hashed = hashlib.sha256("".join(f"{phrase}\n" for phrase in phrases).encode()).hexdigest()
    return {"phrases": len(phrases), "sha256": hashed, "tags": list(tags)}


def _touched(phrases: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The tokens of those `phrases` that overlap with `marks`, both uint8 `[tokens]`: bool `[tokens]`."""
    number = np.cumsum(phrases == BEGINS)
    hit = np.zeros(number[-1] + 1 if len(number) else 1, bool)
    hit[number[(phrases > 0) & (marks > 0)]] = True
    return (phrases > 0) & hit[number]


_BATCHES_AHEAD = 2  # Per process: one in progress and one waiting.

Tag = TypeVar("Tag")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

_function: Callable[[Any], Any]  # In a worker process.


def map_in_processes(
    function: Callable[[Batch], Result], batches: Iterable[tuple[Tag, Batch]], workers: int, remedy: str
) -> Iterator[tuple[Tag, Result]]:
    """Yields `(tag, function(batch))` for each `(tag, batch)`, in order, holding a few batches at a time.

    Processes are spawned, because TensorFlow does not survive a fork. Where the system has no locks for them to share,
    this process does the work.

    Args:
        function: a picklable callable, sent once to each process.
        batches: the tagged batches; they must be picklable too.
        remedy: advice for the caller's user if memory runs out, as sentences.

    Raises:
        UserError: a process died.
    """
    spawn = multiprocessing.get_context("spawn")
    try:
        processes = ProcessPoolExecutor(workers, spawn, _start_worker, (function,))
    except (FileNotFoundError, PermissionError) as error:
        _log.warning(f"/dev/shm: cannot be used ({error.strerror}), so one process does the work, not {workers}.")
        yield from ((tag, function(batch)) for tag, batch in batches)
        return
    # A process that needs nothing of the user's script must not run it again: the script may not be guarded against
    # that.
    hidden: Callable[[], AbstractContextManager[object]]
    hidden = contextlib.nullcontext if b"__main__" in pickle.dumps(function) else _without_script
    waiting: deque[tuple[Tag, Future[Result]]] = deque()
    try:
        for tag, batch in batches:
            with hidden():
                waiting.append((tag, processes.submit(_call, batch)))
            if len(waiting) >= _BATCHES_AHEAD * workers:
                tag, future = waiting.popleft()
                yield tag, future.result()
        for tag, future in waiting:
            yield tag, future.result()
    except BrokenProcessPool:
        raise UserError(
            "Preparing the text: needs its worker processes. Received: one that died, most likely because memory ran "
            f"out. {remedy}"
        ) from None
    finally:
        processes.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Processes that are spawned in the block do not import the script that Python was started with."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def start_tensorflow() -> None:
    """Imports TensorFlow into a worker process, with one thread and no GPU, as other workers use the other cores.

    Nothing happens in a process that has imported it already.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with stderr_withheld():
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.list_logical_devices()


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent stops the workers.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start_tensorflow()
    _function = function


def _end_with_parent() -> None:
    """Ends this process when its parent has ended, however it died; the pool would leave it waiting for work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(batch: Any) -> Any:
    return _function(batch)
