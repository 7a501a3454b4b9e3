"""Random damage to bytes, drawn by Hypothesis, and what bounds a case."""
import contextlib
import json
import re
import resource
import signal
import struct
import time
import zlib

from hypothesis import strategies as st

SECONDS = 5
MEGABYTES = 1024
# What numbers and claims of headers become.
EXTREMES = (
    b'0', b'-1', b'1e400', b'-1e309', b'nan', b'inf', b'1' * 400, b'9' * 5000,
    b'1000000000000', b'18446744073709551616', b'2147483648', b'0x1F', b'1.5',
    b'', b'"', b'\xff', b'\x00', b'null', b'[]', b'{}', '\u0663'.encode(),
    b'1e-400', b'16777217', b'true', b'[' * 2000,
)
WORDS = (
    b'\n', b',', b'\t', b'"', b"'", b'\r', b'\x00', b'\xff\xfe', b'\\', b':',
    b'\xef\xbb\xbf', b'PK\x03\x04', b'\n\n\n', b'y,', b'#', b' ', b'-', b'A',
)
_NUMBER = re.compile(rb'\d+(\.\d+)?')

place = st.integers(0, 2**32)
edits = st.lists(st.one_of(
    st.tuples(st.just('flip'), place, st.integers(0, 7)),
    st.tuples(st.just('truncate'), place),
    st.tuples(st.just('insert'), place, st.one_of(
        st.sampled_from(WORDS), st.binary(min_size=1, max_size=8)
    )),
    st.tuples(st.just('repeat'), place, st.integers(1, 64), st.integers(1, 50)),
    st.tuples(st.just('delete'), place, st.integers(1, 64)),
    st.tuples(st.just('number'), place, st.sampled_from(EXTREMES)),
    st.tuples(st.just('claim'), place, st.sampled_from((
        b'\xff' * 4, b'\xff' * 8, b'\x00' * 4, b'\x7f' + b'\xff' * 3,
        struct.pack('<q', 10**12), struct.pack('>I', 10**9),
    ))),
), min_size=1, max_size=4)


def damaged(raw, changes):
  """`raw` after a list of drawn edits; places count from its start, around."""
  for what, at, *more in changes:
    at %= len(raw) + 1
    if what == 'flip' and at < len(raw):
      raw = raw[:at] + bytes([raw[at] ^ (1 << more[0])]) + raw[at + 1:]
    elif what == 'truncate':
      raw = raw[:at]
    elif what == 'insert':
      raw = raw[:at] + more[0] + raw[at:]
    elif what == 'repeat':
      raw = raw[: at + more[0]] + raw[at : at + more[0]] * more[1] + raw[at:]
    elif what == 'delete':
      raw = raw[:at] + raw[at + more[0]:]
    elif what == 'claim':
      raw = raw[:at] + more[0] + raw[at + len(more[0]):]
    elif what == 'number':
      found = [*_NUMBER.finditer(raw)]
      if found:
        one = found[at % len(found)]
        raw = raw[: one.start()] + more[0] + raw[one.end():]
  return raw


def resealed_png(raw):
  """The chunks' checksums are made right again, as far as there are chunks."""
  made, at = raw[:8], 8
  while at + 12 <= len(raw):
    size = int.from_bytes(raw[at : at + 4], 'big')
    body = raw[at + 4 : at + 8 + size]
    made += raw[at : at + 4] + body + zlib.crc32(body).to_bytes(4, 'big')
    at += size + 12
  return made


def resealed_safetensors(raw, start):
  """The header's length is made right; the tensors start with `start`."""
  end = raw.find(start, 8)
  end = end if end >= 0 else len(raw)
  return struct.pack('<Q', end - 8) + raw[8:]


def resealed_cache(raw):
  """A cache's table.json with its checksum made right."""
  try:
    own = json.loads(raw)
    text = json.dumps(own['table'], sort_keys=True)
    return json.dumps(own | dict(checksum=zlib.crc32(text.encode()))).encode()
  except (ValueError, KeyError, TypeError, RecursionError):
    return raw


class TooLong(BaseException):
  """No `Exception`: nobody who expects anything of a file takes it for that."""


@contextlib.contextmanager
def bounded():
  """Interrupts what takes longer than `SECONDS`, and notices what is larger
  than `MEGABYTES`."""
  def stop(*_):
    raise TooLong(f'more than {SECONDS} s')

  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  start = time.process_time()
  old = signal.signal(signal.SIGALRM, stop)
  # Wall time, of which a busy machine takes a part: what counts is below.
  signal.alarm(10 * SECONDS)
  try:
    yield
  finally:
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
  took = time.process_time() - start
  assert took < SECONDS, f'{took:.1f} s'
  grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
  assert grown < MEGABYTES * 1024, f'{grown} KiB'
