"""The kinds of view: their fields are the threat model.

A view is a "privacy vulnerability" of Kang et al. (2022), Table 3: T1 is that
of an honest-but-curious passive party, T2 that of an active one.

Messages, and gradients of a party's own weights, that are in half precision are
float32 in a view: an attacker computes as well as it can.
"""
from typing import Any, NamedTuple

from vfljax.types import Array, Batch, Params


class CutGradients(NamedTuple):
  """T1 in training: all that passive party k sees in one round.

  Attributes:
    features: [batch, ...] its own samples.
    sent: [batch, ...] its embeddings.
    received: [batch, ...] the cut-layer gradients that it received.
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array


class KnownPositive(NamedTuple):
  """T1 in training, with one sample of the round known to be positive.

  Attributes: as `CutGradients`, and
    known: [batch] 1 at the known positive sample; all 0 if the batch has none.
  """

  features: Array
  sent: Array
  received: Array
  valid: Array
  known: Array


class ClassCenters(NamedTuple):
  """T1 in training, with the centers of both classes' gradients in the round.

  The centers are those of a random half of the round, `known`; the labels of
  the other half are guessed. A center that included the sample to be guessed
  would be biased towards it: in a small round of wide gradients, pure noise
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
  """T1 in training: recorded cut-layer gradients, with a few labels known.

  Attributes:
    known_received: [known, ...] gradients of the samples whose labels the
      attacker knows.
    known_labels: [known, classes] those labels.
    received: [n, ...] gradients of all samples recorded, the known ones among
      them.
  """

  known_received: Array
  known_labels: Array
  received: Array


class ModelGradients(NamedTuple):
  """T1 in training under encryption: no cut-layer gradients in the clear.

  Weights and gradients are those of a plain network, as far as the party can
  read them (`Defense.expose`). With passports (FedPass) they are the sealed
  weights that the party computes with, and the gradients with respect to those.
  For a layer in secret shares (VMask) the weights are made up, since the
  party's share alone says nothing about them. The gradient of its kernel is the
  true one: it is the product of the layer's inputs and its outputs' gradients,
  both of which are revealed to the party (VMask, section IV-D) so that it can
  update its share.

  Attributes:
    features: [batch, ...] passive party k's samples.
    weights: Its bottom network's parameters in the round, as it can read them.
    gradients: The gradients of the batch's mean loss with respect to those
      parameters, after `Defense.share`.
    valid: [batch] 1 for a sample, 0 for a row of padding.
  """

  features: Array
  weights: Params
  gradients: Params
  valid: Array


class WhiteBox(NamedTuple):
  """T2, white box: a passive party's network, and its gradients in many rounds.

  The active party sees this where parties share the gradients of their weights,
  as CAFE assumes. The weights are the same in all of these rounds. A party can
  share no more than it has: its network and the gradients are as in
  `ModelGradients`. Nor can the active party read a layer in secret shares
  (VMask), since its own share and the noise that it added say nothing about the
  weights.

  Attributes:
    weights: 'bottom' and 'defense', the passive party's parameters, the former
      as that party can read them.
    gradients: Their gradients, with the same structure; leaves [rounds, ...].
    rows: [rounds, batch] indices into the pool of the samples in each round.
    blank: [pool, ...] zeros of the shape of the features that it wants.
  """

  weights: dict[str, Params]
  gradients: dict[str, Params]
  rows: Array
  blank: Array


class TrainedBottom(NamedTuple):
  """T1 after training: passive party k's bottom network and a few labels.

  Attributes:
    weights: Its bottom network's parameters, as it can read them.
    labeled_features: [known, ...] its samples whose labels it knows.
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
      all its updates since, without the noise that the active party added.
      Where the party does not see the updates (`mpc.to_active`), the initial
      weights alone.
    copies: The same at each of some rounds, [rounds, ...]; () if it kept none.
    inputs: [rounds, batch, ...] the layer's inputs in those rounds; () if none.
    outputs: [rounds, batch, ...] the layer's outputs; () if none, or if they
      are hidden from the party (`mpc.to_active`).
  """

  copy: dict[str, Array]
  copies: dict[str, Array] | tuple[()]
  inputs: Array | tuple[()]
  outputs: Array | tuple[()]


class UnlabeledBottom(NamedTuple):
  """T1 after training: `TrainedBottom` and the party's unlabeled samples.

  Attributes: as `TrainedBottom`, and
    unlabeled: [n, ...] the features of all its training samples, those with
      known labels among them.
  """

  weights: Params
  labeled_features: Array
  labeled: Array
  features: Array
  unlabeled: Array


class TrainedTop(NamedTuple):
  """T2 after training: the active party's networks and the embeddings it gets.

  Attributes:
    weights: 'bottom', 'top' and 'defense': the parameters of its networks, and
      those that a defense has it train.
    received: [n, ...] embeddings of the samples whose features it wants.
    auxiliary: Labeled samples of which it knows the features of every party.
    memory: The defense's state, which hooks at the active party read. What is
      lent to passive parties (`Defense.lent`) may hold their secrets and is
      replaced by zeros.
  """

  weights: dict[str, Params]
  received: Array
  auxiliary: Batch
  memory: Any = ()
