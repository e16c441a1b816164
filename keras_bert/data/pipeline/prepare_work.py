"""What the workers of a `prepare` pipeline do. Nothing here knows of Apache Beam.

Whatever is finished is in a file, and is not done again: a pipeline that is started a second time reads it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.files import join
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.held_out import SIDES, text_hashes
from keras_bert.data.pipeline.duplicates import Hashes
from keras_bert.data.pipeline.parts import DROPPED, PartFiles
from keras_bert.data.pipeline.pieces import Piece, reading_record
from keras_bert.data.pipeline.repeated import read_clean_blocks
from keras_bert.data.pipeline.shard_plan import PartName, Shard, ShardPlan, documents_of
from keras_bert.data.shards.document_tokenizer import BATCH_CHARACTERS, DocumentTokenizer
from keras_bert.data.shards.shard_format import (
    TokenizedDocuments,
    add_shard,
    new_meta,
    shard_name,
    token_dtype,
    write_shard,
)

# Records of the whole work: what was read and left out, and the content of `meta.json` by side.
SUMMARY, METAS = "summary", "metas"


@dataclass(frozen=True)
class PrepareWork:
    """The work of one `prepare`, sent to every worker.

    Attributes:
        tokenizer: tokenizes documents.
        reading: how the text is read and filtered.
        folder: the folder with the parts, in which the shards are written.
        validation_share: share of documents held out.
        shard_megabytes: size of a shard.
    """

    tokenizer: DocumentTokenizer
    reading: CorpusConfig
    folder: str
    validation_share: float
    shard_megabytes: float

    @property
    def parts(self) -> PartFiles:
        return PartFiles(self.folder)

    def tokenize(self, piece: Piece) -> dict[str, Any]:
        """Writes the parts of a piece. Returns its record: how many blocks the file has, and the reading's report."""
        parts = self.parts
        record = parts.record(piece.name)
        if record is None:
            report, blocks = CorpusReport(), 0
            for number, documents in read_clean_blocks(piece, report, self.reading, parts):
                blocks = number + 1
                if number in piece.numbers(blocks) and not parts.has_part(piece.source, number):
                    parts.write_part(piece.source, number, text_hashes(documents), self._tokenized(documents))
            record = reading_record(blocks, report)
            parts.write_record(piece.name, record)
        return record

    def hashes(self, piece: Piece, blocks: int) -> Iterator[Hashes]:
        """The hashes of each part of a piece."""
        for number in piece.numbers(blocks):
            with self.parts.open_part(piece.source, number) as part:
                hashes = part["hashes"]
            yield Hashes(piece.source, number, np.arange(len(hashes)), hashes)

    def record_duplicates(self, name: PartName, places: Iterable[np.ndarray]) -> None:
        """Writes down which documents of a part are duplicates."""
        self.parts.write_places(DROPPED, *name, places)

    def plan(self, records: Sequence[dict[str, Any]]) -> Iterator[Shard]:
        """Yields what each shard is made of, and writes a summary of the reading, given the files' records in order."""
        names = [(source, block) for source, record in enumerate(records) for block in range(record["blocks"])]
        token_bytes = token_dtype(len(self.tokenizer.vocabulary)).itemsize
        plan = ShardPlan(self.parts, names, self.validation_share, self.shard_megabytes, token_bytes)
        yield from plan.shards()
        self.parts.write_record(SUMMARY, {"files": records, "totals": vars(plan.totals)})

    def write_shard(self, shard: Shard) -> dict[str, Any]:
        """Writes the files of a shard. Returns its side and number, and what `meta.json` needs of it."""
        parts = self.parts
        name = f"{shard.side}-{shard_name(shard.number)}"
        record = parts.record(name)
        if record is None:
            described, counts = write_shard(
                join(self.folder, shard.side),
                shard_name(shard.number),
                list(documents_of(shard, self.validation_share, parts)),
                self._new_meta(),
                self.tokenizer.vocabulary.unk_id,
                parts.folder,
            )
            record = {
                "side": shard.side,
                "number": shard.number,
                "shard": described,
                "counts": counts,
            }
            parts.write_record(name, record)
        return record

    def finish(self, records: Iterable[dict[str, Any]]) -> None:
        """Records the `meta.json` of both sides, given what `write_shard` returned for each shard."""
        metas = {side: self._new_meta() for side in SIDES}
        for record in sorted(records, key=lambda record: record["number"]):
            add_shard(metas[record["side"]], record["shard"], record["counts"])
        for meta in metas.values():
            meta["validation_share"] = self.validation_share
        self.parts.write_record(METAS, metas)

    def _tokenized(self, documents: list[str]) -> TokenizedDocuments:
        tokenized, batch, characters = [], [], 0
        for document in documents:
            batch.append(document)
            characters += len(document)
            if characters >= BATCH_CHARACTERS:
                tokenized.append(self.tokenizer(batch))
                batch, characters = [], 0
        if batch or not tokenized:  # Filters may have left no document of a block.
            tokenized.append(self.tokenizer(batch))
        return TokenizedDocuments.joined(tokenized)

    def _new_meta(self) -> dict[str, Any]:
        tokenizer = self.tokenizer
        return new_meta(tokenizer.vocabulary, tokenizer.lower_case, tokenizer.word_marks, tokenizer.phrase_record())
