"""The operations of a program that draw random numbers."""
import jax

_DRAWS = 'random_bits', 'random_fold_in', 'random_split', 'threefry2x32'


def draws(fn, *arguments) -> list[str]:
  """The operations that draw, wherever in the program they are."""
  found = []

  def look(jaxpr):
    for eqn in jaxpr.eqns:
      if eqn.primitive.name in _DRAWS:
        found.append(eqn.primitive.name)
      inside = jax.tree.leaves(
          list(eqn.params.values()), is_leaf=lambda x: hasattr(x, 'eqns')
      )
      for inner in inside:
        if hasattr(inner, 'eqns'):
          look(getattr(inner, 'jaxpr', inner))

  look(jax.make_jaxpr(fn)(*arguments).jaxpr)
  return found
