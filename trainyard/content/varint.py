"""Unsigned variable-length integers, at most 63 bits and always in their shortest form."""


def write_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes | memoryview, start: int) -> tuple[int, int]:
    """The number at `start`, and where it ends; ValueError for what no writer makes."""
    number = shift = 0
    for at in range(start, min(start + 9, len(data))):
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and at > start:
                raise ValueError("a varint is longer than it needs to be")
            return number, at + 1
        shift += 7
    raise ValueError("a varint is cut short or longer than 9 bytes")
