"""Every layer that a manifest may name. Nothing else is ever built."""

from typing import Annotated, TypeAlias

from pydantic import Field

from trainyard.protocol.manifest.layers.activating import (
    ELU,
    Activation,
    LeakyReLU,
    PReLU,
    ReLU,
    Softmax,
)
from trainyard.protocol.manifest.layers.attending import Attention, MultiHeadAttention
from trainyard.protocol.manifest.layers.base import Effect, Layer
from trainyard.protocol.manifest.layers.convolution import (
    Conv1D,
    Conv2D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
)
from trainyard.protocol.manifest.layers.dense import Dense, Embedding
from trainyard.protocol.manifest.layers.images import (
    Normalization,
    RandomContrast,
    RandomFlip,
    RandomRotation,
    RandomTranslation,
    RandomZoom,
    Rescaling,
    Resizing,
)
from trainyard.protocol.manifest.layers.merging import (
    Add,
    Average,
    Concatenate,
    Maximum,
    Multiply,
    Subtract,
)
from trainyard.protocol.manifest.layers.normalizing import (
    BatchNormalization,
    Dropout,
    GaussianNoise,
    LayerNormalization,
    SpatialDropout1D,
    SpatialDropout2D,
)
from trainyard.protocol.manifest.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    MaxPooling1D,
    MaxPooling2D,
)
from trainyard.protocol.manifest.layers.recurrent import (
    GRU,
    LSTM,
    Bidirectional,
    SimpleRNN,
)
from trainyard.protocol.manifest.layers.shaping import (
    Cropping2D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    UpSampling2D,
    ZeroPadding1D,
    ZeroPadding2D,
)

AnyLayer: TypeAlias = Annotated[
    Activation
    | Add
    | Attention
    | Average
    | AveragePooling1D
    | AveragePooling2D
    | BatchNormalization
    | Bidirectional
    | Concatenate
    | Conv1D
    | Conv2D
    | Cropping2D
    | Dense
    | DepthwiseConv2D
    | Dropout
    | ELU
    | Embedding
    | Flatten
    | GRU
    | GaussianNoise
    | GlobalAveragePooling1D
    | GlobalAveragePooling2D
    | GlobalMaxPooling1D
    | GlobalMaxPooling2D
    | LSTM
    | LayerNormalization
    | LeakyReLU
    | MaxPooling1D
    | MaxPooling2D
    | Maximum
    | MultiHeadAttention
    | Multiply
    | Normalization
    | PReLU
    | Permute
    | RandomContrast
    | RandomFlip
    | RandomRotation
    | RandomTranslation
    | RandomZoom
    | ReLU
    | RepeatVector
    | Rescaling
    | Reshape
    | Resizing
    | SeparableConv1D
    | SeparableConv2D
    | SimpleRNN
    | Softmax
    | SpatialDropout1D
    | SpatialDropout2D
    | Subtract
    | UpSampling2D
    | ZeroPadding1D
    | ZeroPadding2D,
    Field(discriminator="type"),
]

__all__ = ["AnyLayer", "Effect", "Layer"]
