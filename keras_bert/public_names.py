"""The public names of the package, by purpose, and the modules that define them.

`keras_bert` imports a name on first use; `tools/make_api_page.py` writes docs/api.md from this list. A new name also
goes into the `TYPE_CHECKING` block of `keras_bert/__init__.py`, where type checkers look.
"""

PUBLIC_NAMES = {
    "Opening and writing models": {
        "load": "keras_bert.inference.loading",
        "LoadedModel": "keras_bert.inference.loading",
        "LoadReport": "keras_bert.checkpoints.load_report",
        "open_model_folder": "keras_bert.checkpoints.model_folder",
        "ModelFolder": "keras_bert.checkpoints.model_folder",
        "write_model_folder": "keras_bert.checkpoints.model_writing",
        "UserError": "keras_bert.errors",
    },
    "Answers and vectors": {
        "Classification": "keras_bert.inference.classify",
        "Filling": "keras_bert.inference.fill_mask",
        "Continuation": "keras_bert.inference.generation",
        "TextEmbedder": "keras_bert.inference.text_embedding",
        "EmbeddedTexts": "keras_bert.inference.text_embedding",
        "PooledEncoder": "keras_bert.inference.pooling",
        "serving_function": "keras_bert.export.serving_function",
        "ServingFunction": "keras_bert.export.serving_function",
    },
    "Text": {
        "WordPieceTokenizer": "keras_bert.text.tokenizer",
        "SentencePieceTokenizer": "keras_bert.text.sentencepiece_tokenizer",
        "SentencePieceVocabulary": "keras_bert.text.sentencepiece_vocabulary",
        "StandaloneTokenizer": "keras_bert.text.standalone_tokenizer",
        "Vocabulary": "keras_bert.text.vocabulary",
        "learn_vocabulary": "keras_bert.text.vocabulary_learning",
        "split_sentences": "keras_bert.text.sentences",
        "encoder_inputs": "keras_bert.inference.encoder_inputs",
    },
    "Models": {
        "BertConfig": "keras_bert.config.bert",
        "BertEncoder": "keras_bert.models.encoder",
        "AlbertConfig": "keras_bert.config.albert",
        "AlbertEncoder": "keras_bert.models.albert_encoder",
        "ElmoConfig": "keras_bert.config.elmo",
        "ElmoEncoder": "keras_bert.models.elmo_encoder",
        "BertForPreTraining": "keras_bert.models.pretraining",
        "BertForSequenceClassification": "keras_bert.models.sequence_classification",
        "BertForTokenClassification": "keras_bert.models.token_classification",
        "BertForQuestionAnswering": "keras_bert.models.span_extraction",
        "BertForMultipleChoice": "keras_bert.models.multiple_choice",
        "BertFeatureTagger": "keras_bert.models.feature_tagger",
        "BertCrfTagger": "keras_bert.models.crf_tagger",
        "BertSegmenter": "keras_bert.models.crf_tagger",
        "BertForSentenceVectors": "keras_bert.models.sentence_vectors",
        "BertForSpanPairs": "keras_bert.models.span_pairs",
        "EncoderWithHeads": "keras_bert.models.encoder_with_heads",
    },
    "Configs of heads": {
        "ClassificationConfig": "keras_bert.config.heads",
        "TokenClassificationConfig": "keras_bert.config.heads",
        "SpanExtractionConfig": "keras_bert.config.heads",
        "MultipleChoiceConfig": "keras_bert.config.heads",
        "FeatureTaggingConfig": "keras_bert.config.heads",
        "CrfTaggingConfig": "keras_bert.config.heads",
        "SegmentationConfig": "keras_bert.config.heads",
        "SentenceVectorsConfig": "keras_bert.config.heads",
        "SpanPairConfig": "keras_bert.config.heads",
    },
    "Layers": {
        "BertEmbeddings": "keras_bert.layers.embeddings",
        "EncoderBlock": "keras_bert.layers.encoder_block",
        "SelfAttention": "keras_bert.layers.attention",
        "Pooler": "keras_bert.layers.pooler",
        "MaskedLMHead": "keras_bert.layers.masked_lm_head",
        "NextSentenceHead": "keras_bert.layers.next_sentence_head",
        "ClassificationHead": "keras_bert.layers.classification_head",
    },
    "Training": {
        "AdamW": "keras_bert.training.optimizers.adamw",
        "WarmupDecay": "keras_bert.training.schedules",
        "keep_freed_memory": "keras_bert.allocator",
    },
    "New kinds of tasks": {
        "TaskKind": "keras_bert.task_kinds",
        "register": "keras_bert.task_kinds",
        "unregister": "keras_bert.task_kinds",
        "Problem": "keras_bert.tasks.problem",
        "Signature": "keras_bert.export.signature",
        "TensorName": "keras_bert.checkpoints.names",
        "StoredName": "keras_bert.checkpoints.names",
    },
    "New kinds of models": {
        "ModelKind": "keras_bert.model_kinds",
        "GoogleFiles": "keras_bert.model_kinds",
        "register_model_kind": "keras_bert.model_kinds",
        "unregister_model_kind": "keras_bert.model_kinds",
    },
}

MODULES = {name: module for modules in PUBLIC_NAMES.values() for name, module in modules.items()}
