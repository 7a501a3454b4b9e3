"""What is counted in a compiled program's text."""
import jax
import jax.numpy as jnp
import pytest

from experiments.bench import accel_counts

TEXT = '''HloModule jit_f

%inner (p: f32[3]) -> f32[3] {
  %p = f32[3]{0} parameter(0)
  ROOT %add.1 = f32[3]{0} add(%p, %p)
}

%body (p: (s32[], f32[64,2])) -> (s32[], f32[64,2]) {
  %p = (s32[], f32[64,2]{1,0:T(8,128)}) parameter(0)
  %one = f32[64,2]{1,0:T(8,128)} fusion(%p), kind=kLoop, calls=%inner
  %two = (f32[8]{0}, bf16[4,2]{1,0}) fusion(%one), kind=kLoop, calls=%inner
  ROOT %t = (s32[], f32[64,2]{1,0}) tuple(%p, %one)
}

%test (p: (s32[], f32[64,2])) -> pred[] {
  %p = (s32[], f32[64,2]{1,0}) parameter(0)
  %end = s32[]{:T(128)} constant(50)
  %i = s32[] get-tuple-element(%p), index=0
  ROOT %less = pred[] compare(%i, %end), direction=LT
}

%asks (p: (s32[], f32[64,2])) -> pred[] {
  %p = (s32[], f32[64,2]{1,0}) parameter(0)
  ROOT %all = pred[] fusion(%p), kind=kLoop, calls=%inner
}

ENTRY %main (x: f32[64,2]) -> f32[64,2] {
  %x = f32[64,2]{1,0} parameter(0)
  %a = (s32[], f32[64,2]) while(%x), condition=%test, body=%body
  %b = (s32[], f32[64,2]) while(%a), condition=%asks, body=%body
  %c = (s32[], f32[64,2]) while(%b), condition=%asks, body=%body, \
backend_config={"known_trip_count":{"n":"3"}}
  %h = f32[2]{0} custom-call(%x), custom_call_target="xla_python_gpu_callback"
  ROOT %y = f32[64,2]{1,0} copy(%c)
}
'''


def test_kernels_loops_and_the_host():
  program = accel_counts.Program(TEXT)
  one = program.round(50)
  assert one == (2, 512 + 32 + 16, 64 * 128 * 4 + 32 + 16, 0, 0)
  whole = program.whole()
  assert whole.kernels == (50 + 1 + 3) * 2 + 2
  assert (whole.open, whole.host) == (1, 1)
  assert whole.written == 54 * one.written + 8 + 512
  assert program.round(7) is None


@pytest.mark.parametrize('text, plain, padded', [
    ('f32[3220,2]{1,0:T(8,128)}', 25760, 3224 * 128 * 4),
    ('f32[3220,2]{0,1:T(2,128)}', 25760, 3328 * 2 * 4),
    ('(s8[4]{0:T(256)}, f32[])', 8, 260),
    ('u32[]', 4, 4),
])
def test_padding(text, plain, padded):
  assert accel_counts.sizes(text) == (plain, padded)


def test_a_real_program():
  def sums(x):
    return jax.lax.fori_loop(0, 5, lambda i, x: jnp.sin(x @ x), x)

  text = jax.jit(sums).lower(jnp.ones((4, 4))).compile().as_text()
  program = accel_counts.Program(text)
  assert program.whole().kernels > 0 and program.whole().host == 0
