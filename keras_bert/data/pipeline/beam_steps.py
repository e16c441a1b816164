"""Steps that several pipelines share."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keras_bert.data.pipeline.duplicates import find_duplicates
from keras_bert.extras import import_extra

if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")


class FindDuplicates(beam.DoFn):
    """`(bucket, hashes)` to `((source, block), places)`; see `find_duplicates`."""

    def process(self, element: Any) -> Iterator[Any]:
        yield from find_duplicates(element[1])
