"""Optimizers with decoupled weight decay, each in a file that `optimizer.name` names.

A file has a subclass of `base.BertOptimizer`, and `from_config`, which makes one from a recipe's section.
"""
