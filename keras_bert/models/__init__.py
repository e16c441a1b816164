"""The models: an encoder of each kind, with the heads and losses of pretraining."""
