"""Writes configs/schemas: what the files in configs/ may hold, for editors.

    python tools/make_schemas.py

tests/config/test_schema.py fails if they are out of date.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.config.schema import schemas

FOLDER = os.path.join(ROOT, "configs", "schemas")


def texts() -> dict[str, str]:
    """`{name: content}` of the files."""
    made = {f"{name}.json": json.dumps(schema, indent=1, ensure_ascii=False) for name, schema in schemas().items()}
    return {name: text + "\n" for name, text in made.items()}


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for name, text in texts().items():
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write(text)
