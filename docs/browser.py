"""A headless Chromium, told what to do over a pipe.

  with Browser() as browser:
    browser.open(page, width=1280, height=800)
    png = browser.picture()

Chromium's DevTools protocol is JSON with a zero byte after each message, from
file descriptor 3 to 4 of it: it needs no port, no driver and no package.
"""
import base64
from collections.abc import Mapping
import json
import os
from pathlib import Path
import shutil
import subprocess
import tempfile
from typing import Any, Self

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')
_FLAGS = (
    '--headless=new', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
    '--disable-dev-shm-usage', '--force-color-profile=srgb',
    # Nothing here is to ask anybody for anything.
    '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--remote-debugging-pipe',
)


class Missing(Exception):
  """A program is not here; says how to install it."""


class Browser:
  """A browser with one page; a context manager."""

  def __init__(self, program: str = ''):
    """Does not start it yet.

    Args:
      program: Its path; by default the first of `NAMES` that is there.

    Raises:
      Missing: if there is none.
    """
    found = shutil.which(program) if program else next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if not found:
      raise Missing(
          f'There is no {program or "Chromium"}. Debian and Ubuntu: apt '
          'install chromium. One elsewhere: --browser=/path/to/chrome.'
      )
    self._program, self._sent, self._unread = found, 0, b''
    self._session = ''

  def __enter__(self) -> Self:
    self._home = tempfile.TemporaryDirectory(prefix='vfljax-browser-')
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # Chromium's sandbox does not run as root.
    root = ['--no-sandbox'] if os.geteuid() == 0 else []
    command = [
        self._program, *_FLAGS, *root, f'--user-data-dir={self._home.name}',
        'about:blank',
    ]
    # A shell gives the pipes the numbers that they must have.
    self._child = subprocess.Popen(
        ['sh', '-c', f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', 'sh',
         *command],
        pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    self._out, self._in = ours_out, ours_in
    target = self.do('Target.createTarget', url='about:blank')['targetId']
    self._session = self.do(
        'Target.attachToTarget', targetId=target, flatten=True
    )['sessionId']
    self.do('Page.enable')
    return self

  def __exit__(self, kind, error, trace) -> None:
    os.close(self._out)  # Which it takes for the end.
    try:
      self._child.wait(20)
    except subprocess.TimeoutExpired:
      self._child.kill()
      self._child.wait()
    os.close(self._in)
    shutil.rmtree(self._home.name, ignore_errors=True)
    self._home.cleanup()

  def do(self, method: str, **params: Any) -> dict[str, Any]:
    """Calls a method of the protocol; its result.

    Raises:
      RuntimeError: if it fails, or the browser is gone.
    """
    self._sent += 1
    message = dict(id=self._sent, method=method, params=params)
    message |= dict(sessionId=self._session) if self._session else {}
    left = json.dumps(message).encode() + b'\0'
    while left:
      left = left[os.write(self._out, left):]
    while (answer := self._next()).get('id') != self._sent:
      pass
    if 'error' in answer:
      raise RuntimeError(f'{method}: {answer["error"]["message"]}')
    return answer['result']

  def open(
      self, page: Path, width: int, height: int, scale: float = 1,
      media: Mapping[str, str] | None = None,
  ) -> None:
    """Shows a page that lies on the disk.

    Args:
      width: Of the window, in CSS pixels, as `height`.
      scale: Pixels of the screen for one of CSS.
      media: What a page asks for: {'prefers-color-scheme': 'dark'}.
    """
    self.do(
        'Emulation.setDeviceMetricsOverride', width=width, height=height,
        deviceScaleFactor=scale, mobile=width < 600,
    )
    asked = [dict(name=k, value=v) for k, v in (media or {}).items()]
    self.do('Emulation.setEmulatedMedia', media='', features=asked)
    self.do('Page.navigate', url=page.absolute().as_uri())
    self.value(
        "new Promise(done => document.readyState == 'complete' ? done() : "
        "addEventListener('load', () => done()))"
    )

  def value(self, script: str) -> Any:
    """What a script gives on the page, when it is there.

    Raises:
      RuntimeError: for an exception.
    """
    found = self.do(
        'Runtime.evaluate', expression=script, awaitPromise=True,
        returnByValue=True,
    )
    if 'exceptionDetails' in found:
      raise RuntimeError(str(found['exceptionDetails'])[:500])
    return found['result'].get('value')

  def picture(self, whole: bool = False) -> bytes:
    """A PNG of the window, or of the whole page."""
    found = self.do('Page.captureScreenshot', captureBeyondViewport=whole)
    return base64.b64decode(found['data'])

  def paper(self) -> bytes:
    """The page as it is printed: a PDF on A4."""
    found = self.do(
        'Page.printToPDF', paperWidth=8.27, paperHeight=11.69,
        printBackground=False, preferCSSPageSize=True,
    )
    return base64.b64decode(found['data'])

  def _next(self) -> dict[str, Any]:
    while b'\0' not in self._unread:
      more = os.read(self._in, 1 << 20)
      if not more:
        raise RuntimeError('The browser has ended.')
      self._unread += more
    one, _, self._unread = self._unread.partition(b'\0')
    return json.loads(one)
