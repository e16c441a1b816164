"""Word segmentation, as data."""

from keras_bert.tasks.segmentation.segmented_texts import segmented_reader
from keras_bert.tasks.tagging.tasks import TaggingTask

SEGMENT = TaggingTask(
    "segment",
    segmented_reader,
    in_columns=False,
    marks_entities=False,
    patterns={
        split: (f"*-ud-{split}.conllu", f"{split}.conllu", f"*{split}.conllu", f"{split}.*")
        for split in ("train", "dev", "test")
    },
)
