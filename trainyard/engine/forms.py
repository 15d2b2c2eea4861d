"""Many Examples decoded at once.

Records of one schema differ in their values and in nothing else, but for how many bytes integers
take. So a record is compared with a form, which is an Example with its values left blank: where all
but the blanks is equal, the values stand in the blanks. Whatever has no form is decoded by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.content.dag import field
from trainyard.datasets.errors import CorruptRecordError
from trainyard.datasets.example import decode_varints, encode_varints
from trainyard.datasets.schema import Encoding, Feature, Schema
from trainyard.engine.columns import Array

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Places: TypeAlias = npt.NDArray[np.intp]

_KINDS = {Encoding.RAW: 1, Encoding.FLOAT: 2, Encoding.INT64: 3}
_LONGEST_VARINT = 10
# Records of one length have more forms only where several features are integers of any size.
_MOST_FORMS = 8


class RecordError(CorruptRecordError):
    """Says which of the messages is corrupt."""

    def __init__(self, place: int, error: CorruptRecordError) -> None:
        super().__init__(str(error))
        self.place = place


@dataclass(frozen=True, slots=True)
class _Form:
    """An Example of a certain length, with blanks where each feature's values stand."""

    blanks: dict[str, slice]
    fixed: _Places
    expected: _Bytes


class Decoder:
    """Decodes the features `names` of records that have a schema."""

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        self._schema, self._names = schema, tuple(names)
        self._features = sorted(schema.features, key=lambda feature: feature.name)
        # Text has no one length, and has to be looked at to be known as such.
        self._has_forms = all(feature.encoding in _KINDS for feature in self._features)
        self._forms: dict[int, list[_Form]] = {}

    def decode(self, messages: Sequence[bytes], into: dict[str, Array]) -> None:
        """Put the values of message i into row i of each array; RecordError for a corrupt one."""
        lengths = np.array([len(message) for message in messages])
        for length in np.unique(lengths).tolist():
            self._decode_alike(messages, np.flatnonzero(lengths == length), length, into)

    def _decode_alike(
        self,
        messages: Sequence[bytes],
        places: _Places,
        length: int,
        into: dict[str, Array],
    ) -> None:
        """Messages of one length: by the forms that are known, then by one made from the rest."""
        forms = self._forms.get(length, [])
        for form in forms:
            places = self._fill(form, messages, places, length, into)
        while places.size:
            first, places = int(places[0]), places[1:]
            integers = self._decode_alone(messages, first, into)
            if places.size and self._has_forms and len(forms) < _MOST_FORMS:
                made = self._form(integers, length)
                if made is not None:
                    # A new list, for another thread may be going through the old one.
                    forms = self._forms[length] = [*forms, made]
                    places = self._fill(made, messages, places, length, into)

    def _decode_alone(
        self, messages: Sequence[bytes], place: int, into: dict[str, Array]
    ) -> dict[str, int]:
        """Decode one message; says how many bytes each feature of integers takes."""
        try:
            record = self._schema.decode(messages[place])
        except CorruptRecordError as error:
            raise RecordError(place, error) from error
        for name in self._names:
            into[name][place] = record[name]
        return {
            feature.name: len(encode_varints(record[feature.name].astype(np.int64)))
            for feature in self._features
            if feature.encoding is Encoding.INT64
        }

    def _form(self, integers: dict[str, int], length: int) -> _Form | None:
        """The form that our own encoder gives a record; None where the record is not from it."""
        sizes = [
            integers[feature.name]
            if feature.encoding is Encoding.INT64
            else feature.count * np.dtype(feature.dtype).itemsize
            for feature in self._features
        ]
        entries = [
            field(1, field(1, feature.name.encode()) + field(2, _blank(feature, size)))
            for feature, size in zip(self._features, sizes, strict=True)
        ]
        example = field(1, b"".join(entries))
        if len(example) != length:
            return None
        blanks = {}
        end = length - sum(map(len, entries))
        is_fixed = np.ones(length, bool)
        for feature, size, entry in zip(self._features, sizes, entries, strict=True):
            end += len(entry)
            blanks[feature.name] = slice(end - size, end)
            is_fixed[end - size : end] = False
        fixed = np.flatnonzero(is_fixed)
        return _Form(blanks, fixed, np.frombuffer(example, np.uint8)[fixed])

    def _fill(
        self,
        form: _Form,
        messages: Sequence[bytes],
        places: _Places,
        length: int,
        into: dict[str, Array],
    ) -> _Places:
        """Decode those of the messages that have the form, and return the places of the others."""
        joined = b"".join([messages[place] for place in places.tolist()])
        table = np.frombuffer(joined, np.uint8).reshape(len(places), length)
        # INVARIANT: all tags and lengths of a message are compared, so only values can differ.
        fits: npt.NDArray[np.bool_] = (table[:, form.fixed] == form.expected).all(axis=1)
        for feature in self._features:
            if feature.encoding is Encoding.INT64:
                fits &= _hold_integers(table[:, form.blanks[feature.name]], feature.count)
        chosen, table = places[fits], table[fits]
        for feature in self._features:
            if feature.name in self._names and chosen.size:
                into[feature.name][chosen] = _values(feature, table[:, form.blanks[feature.name]])
        others: _Places = places[~fits]
        return others


def _blank(feature: Feature, size: int) -> bytes:
    return field(_KINDS[feature.encoding], field(1, bytes(size)))


def _hold_integers(data: _Bytes, count: int) -> npt.NDArray[np.bool_]:
    """Whether each row is `count` integers; longer ones than there are fit no form."""
    ends = data < 0x80
    places = np.arange(data.shape[1])
    since_end = places - np.maximum.accumulate(np.where(ends, places, -1), axis=1)
    is_whole: npt.NDArray[np.bool_] = since_end[:, -1:].sum(axis=1) == 0
    is_whole &= (ends.sum(axis=1) == count) & (since_end.max(axis=1, initial=0) < _LONGEST_VARINT)
    return is_whole


def _values(feature: Feature, data: _Bytes) -> Array:
    shape = (len(data), *feature.shape)
    if feature.encoding is not Encoding.INT64:
        stored = np.dtype(feature.dtype).newbyteorder("<")
        return np.ascontiguousarray(data).view(stored).reshape(shape)
    if data.shape[1] == feature.count:
        return data.astype(feature.dtype).reshape(shape)
    return decode_varints(data.tobytes()).astype(feature.dtype).reshape(shape)
