"""What benchmark_serving.py compares: each opens the same classifier and turns strings into probabilities.

`build(folder, threads, scratch)` returns a function from a list of str to an array [texts, labels].
"""

import os
import sys
from functools import partial

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_ours(folder, threads, scratch, **options):
    """The export, written and loaded again as Serving would."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    import keras_bert
    from keras_bert.export.saved_model import write_version
    from keras_bert.export.serving_function import serving_function

    path = write_version(os.path.join(scratch, "served"), serving_function(keras_bert.load(folder), **options))
    signature = tf.saved_model.load(path).signatures["serving_default"]
    return lambda texts: signature(text=tf.constant(texts))["probabilities"].numpy()


def build_litert(folder, threads, scratch, quantization="none"):
    """The export for LiteRT with the plain-Python tokenizer in its folder, one text at a time."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras_bert
    from keras_bert.export.litert import write_litert
    from tools.litert_model import LiteRTModel

    path = os.path.join(scratch, "edge")
    write_litert(path, keras_bert.load(folder), quantization)
    model, tokenizer = LiteRTModel(path, threads), keras_bert.StandaloneTokenizer.from_folder(path)
    return lambda texts: np.concatenate([model(tokenizer.encode(text))["probabilities"] for text in texts])


def build_pipeline(folder, threads, scratch, dtype="float32"):
    """transformers' pipeline, on PyTorch."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    pipeline = transformers.pipeline(
        "text-classification", model=folder, device="cpu", top_k=None, truncation=True, dtype=getattr(torch, dtype)
    )
    order = list(pipeline.model.config.id2label.values())

    def predict(texts):
        answers = pipeline(texts, batch_size=len(texts))
        scores = [{found["label"]: found["score"] for found in answer} for answer in answers]
        return np.array([[row[label] for label in order] for row in scores])

    return predict


def build_onnxruntime(folder, threads, scratch, quantized=False):
    """onnxruntime with Hugging Face's tokenizers, padded to the longest of the batch."""
    import onnxruntime
    import tokenizers
    import torch
    import transformers

    names = ["input_ids", "attention_mask", "token_type_ids"]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    example = torch.ones((2, 16), dtype=torch.int64)
    path = os.path.join(scratch, "model.onnx")
    axes = {name: {0: "batch", 1: "seq"} for name in names} | {"logits": {0: "batch"}}
    torch.onnx.export(
        model, (example,) * 3, path, input_names=names, output_names=["logits"], dynamic_axes=axes, dynamo=False
    )
    if quantized:
        from onnxruntime import quantization

        exact, path = path, os.path.join(scratch, "int8.onnx")
        quantization.quantize_dynamic(exact, path, per_channel=True, weight_type=quantization.QuantType.QInt8)
        os.remove(exact)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.BertWordPieceTokenizer(os.path.join(folder, "vocab.txt"), lowercase=True).to_str()
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id("[PAD]"))
    tokenizer.enable_truncation(model.config.max_position_embeddings)

    def predict(texts):
        encoded = tokenizer.encode_batch_fast(texts)
        columns = ([getattr(row, name) for row in encoded] for name in ("ids", "attention_mask", "type_ids"))
        inputs = {name: np.array(column, "int64") for name, column in zip(names, columns, strict=True)}
        (logits,) = session.run(["logits"], inputs)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return shares / shares.sum(axis=-1, keepdims=True)

    return predict


_LITERT = ("ai_edge_litert",)
_TORCH = ("torch", "transformers")
_ONNX = ("onnxruntime", "onnx", *_TORCH, "tokenizers")
CONTESTANTS = {
    "ours": (build_ours, ()),
    "ours_jit": (partial(build_ours, jit=True), ()),
    "ours_bfloat16": (partial(build_ours, dtype="bfloat16"), ()),
    "ours_computed_in_bfloat16": (partial(build_ours, compute="bfloat16"), ()),
    "pipeline": (build_pipeline, _TORCH),
    "pipeline_bfloat16": (partial(build_pipeline, dtype="bfloat16"), _TORCH),
    "onnxruntime": (build_onnxruntime, _ONNX),
    "onnxruntime_int8": (partial(build_onnxruntime, quantized=True), _ONNX),
    "litert": (build_litert, _LITERT),
    "litert_float16": (partial(build_litert, quantization="float16"), _LITERT),
    "litert_int8": (partial(build_litert, quantization="int8"), _LITERT),
}
