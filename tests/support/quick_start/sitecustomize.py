"""Quickens the TensorFlow of any process with this folder in PYTHONPATH: Python imports this when it starts."""

import importlib.abc
import importlib.util
import os
import sys


class QuickTensorFlow(importlib.abc.MetaPathFinder):
    """Comes before the real TensorFlow's finder, to act once that or Keras, which imports it, is imported."""

    def find_spec(self, name, path, target=None):
        if name not in ("tensorflow", "keras"):
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        import_whole = spec.loader.exec_module

        def import_and_quicken(module):
            from keras_bert.core.runtime import lean_import

            with lean_import():
                import_whole(module)
            sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            from quick_tracing import quicken, rewrite_graphs

            quicken()
            rewrite_graphs(False)

        spec.loader.exec_module = import_and_quicken
        return spec


sys.meta_path.insert(0, QuickTensorFlow())
