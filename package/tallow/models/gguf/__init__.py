"""Models in GGUF files.

models, config               read a model and its config
export, settings, recipes    write a model and its metadata, in the formats of a file type
importance                   measure what quantisation may round most
names                        tensors and metadata, by architecture
"""
