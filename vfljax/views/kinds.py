"""The kinds of view: their fields are the threat model.

A view is the "privacy vulnerability" of Kang et al. (2022), Table 3: T1 for a
curious passive party, T2 for a curious active one.
"""
from typing import Any, NamedTuple

from vfljax.types import Array, Batch, Params


class CutGradients(NamedTuple):
  """T1 in training: what passive party k sees in one round, and nothing more.

  Attributes:
    features: [batch, ...] its own samples.
    sent: [batch, ...] its embeddings.
    received: [batch, ...] its cut-layer gradients, as sent to it.
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array


class KnownPositive(NamedTuple):
  """T1 in training, and the gradient of one sample known to be positive.

  Attributes: as `CutGradients`, and
    known: [batch] 1 at the known positive sample; all 0 if the batch has none.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array
  known: Array


class ClassCenters(NamedTuple):
  """T1 in training, and the centers of both classes' gradients in the round.

  The centers come from a random half of the round, `known`, and the other half
  is what is left to guess. A center that contained the sample to be guessed
  would be drawn towards it: in a small round of wide gradients, pure noise
  would then "leak" its labels (batch 32, width 16: AUC 0.77).

  Attributes: as `CutGradients`, and
    known: [batch] 1 at the samples that make up the centers.
    means: [classes, ...] mean gradient of each class.
    medians: [classes, ...] coordinate-wise median gradient of each class.
      A class without a known sample has zeros for both.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array
  known: Array
  means: Array
  medians: Array


class RecordedGradients(NamedTuple):
  """T1 in training: cut-layer gradients kept for a while, a few labels known.

  Attributes:
    known_received: [known, ...] gradients of samples whose labels it has
      learned.
    known_labels: [known, classes] those labels.
    received: [n, ...] the gradients of all samples that it recorded.
  """

  known_received: Array
  known_labels: Array
  received: Array


class ModelGradients(NamedTuple):
  """T1 in training under encryption: no cut-layer gradients in the clear.

  Weights and gradients are those of a plain network, as far as the party can
  read them (`Defense.expose`). With passports (FedPass) these are the sealed
  weights, with which the party computes, and the gradients with respect to
  them. Of a layer in secret shares (VMask) the weights are made up, since the
  party holds a share that says nothing by itself; the gradient of its kernel is
  the true one, the layer's inputs times its outputs' gradients, both of which
  are opened to the party (VMask, section IV-D), who updates its share by it.

  Attributes:
    features: [batch, ...] passive party k's samples.
    weights: Its bottom network's parameters in the round, as it can read them.
    gradients: Those parameters' gradients, of the batch's mean loss, as it uses
      them (`Defense.share`).
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  weights: Params
  gradients: Params
  valid: Array


class WhiteBox(NamedTuple):
  """T2, white box: a passive party's network, and its gradients in many rounds.

  What the active party sees where parties share the gradients of their weights,
  as CAFE assumes. The federation stands still meanwhile. A party can share no
  more than it has: its network and the gradients are as in `ModelGradients`. A
  layer in secret shares (VMask) the active party cannot read either, since its
  share and the noise that it added say nothing about the weights.

  Attributes:
    weights: 'bottom' and 'defense', the passive party's parameters, the former
      as it can read them.
    gradients: The same of their gradients, leaves [rounds, ...].
    rows: [rounds, batch] which samples of a pool, 0.., were in each round.
    blank: [pool, ...] zeros, of the shape of the features that it wants.
  """

  weights: dict[str, Params]
  gradients: dict[str, Params]
  rows: Array
  blank: Array


class TrainedBottom(NamedTuple):
  """T1 after training: passive party k's bottom network and a few labels.

  Attributes:
    weights: Its bottom network's parameters, as it can read them.
    labeled_features: [known, ...] its samples whose labels it has learned.
    labeled: [known, classes] those labels.
    features: [samples, ...] the samples whose labels it wants.
  """

  weights: Params
  labeled_features: Array
  labeled: Array
  features: Array


class MaskedLayer(NamedTuple):
  """T1 with secret shares: what passive party k keeps of one masked layer.

  Its share is uniform and says nothing by itself. But the party had the weights
  before it shared them, and under VMask it computes the layer's updates.

  Attributes:
    copy: 'kernel' and perhaps 'bias': the weights that it put into shares plus
      all its updates since. The active party's noise is not in them. Where
      updates are not the party's to see (T4): the weights before, alone.
    copies: The same at each of some rounds, [rounds, ...]; () if it kept none.
    inputs: [rounds, batch, ...] the layer's inputs in those rounds; () if none.
    outputs: [rounds, batch, ...] its outputs; () if none, or hidden (T4).
  """

  copy: dict[str, Array]
  copies: dict[str, Array] | tuple[()]
  inputs: Array | tuple[()]
  outputs: Array | tuple[()]


class UnlabeledBottom(NamedTuple):
  """T1 after training: as `TrainedBottom`, and its samples without labels.

  Attributes: as `TrainedBottom`, and
    unlabeled: [n, ...] its training samples; among them, without their labels,
      are the labeled ones.
  """

  weights: Params
  labeled_features: Array
  labeled: Array
  features: Array
  unlabeled: Array


class TrainedTop(NamedTuple):
  """T2 after training: the active party's networks and what it is sent.

  Attributes:
    weights: 'bottom', 'top' and 'defense': its networks' parameters, and what a
      defense has it train beside them.
    received: [n, ...] embeddings of the samples whose features it wants.
    auxiliary: Samples whose features at every party it knows, with labels.
    memory: The defense's, which its own hooks compute with; zeros for what is
      lent to passive parties (`Defense.lent`), whose secrets may be in it.
  """

  weights: dict[str, Params]
  received: Array
  auxiliary: Batch
  memory: Any = ()
