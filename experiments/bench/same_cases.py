"""The small experiments that same.py runs before and after a change.

Together they cover every attack, every defense, every paper's federation and
the runner's features. Studies' scripts and other data sets are left out.
"""
from typing import NamedTuple

# Flags that a BEFORE without vfljax/runner/ has under another name:
# {name in AFTER: name in BEFORE}.
RENAMED: dict[str, str] = {
    'attack.cafe.batch': 'attack.cafe_batch',
    'attack.cafe.pool': 'attack.cafe_pool',
    'attack.cafe.steps': 'attack.cafe_steps',
    'attack.completion.batch_size': 'attack.batch_size',
    'attack.completion.bottom_rate': 'attack.bottom_rate',
    'attack.completion.epochs': 'attack.epochs',
    'attack.completion.norm': 'attack.norm',
    'attack.completion.optimizer': 'attack.optimizer',
    'attack.completion.schedule': 'attack.schedule',
    'attack.completion.stages': 'attack.stages',
    'attack.completion.standardize': 'attack.standardize',
    'attack.gradient_inversion.restarts': 'attack.inversion_restarts',
    'attack.gradient_inversion.steps': 'attack.inversion_steps',
    'attack.label_replacement.triggered': 'attack.triggered',
    'attack.median_scoring.center': 'attack.median',
    'attack.mixmatch.epochs': 'attack.epochs',
    'attack.mixmatch.iterations': 'attack.iterations',
    'attack.mixmatch.stages': 'attack.stages',
    'attack.model_inversion.samples': 'attack.inverted',
    'attack.model_inversion.shadow_steps': 'attack.shadow_steps',
    'attack.noisy_sample.rate': 'attack.noisy',
}


class Case(NamedTuple):
  """A small experiment.

  Flags are '<field>=<value>' with spaces between; '--config.' comes before each
  and {data} is the folder of data sets.

  Attributes:
    name: For people, and of the file that --keep writes.
    config: Below experiments/, with what follows a colon.
    flags: Of both trees, with AFTER's names where `RENAMED` knows BEFORE's.
    before: Flags of BEFORE alone.
    after: Flags of AFTER alone.
    old: BEFORE's config, if AFTER has it elsewhere.
  """

  name: str
  config: str
  flags: str = ''
  before: str = ''
  after: str = ''
  old: str = ''


SHORT = 'train.epochs=2 alone=False'
BRIEF = f'{SHORT} attack.completion.epochs=5 attack.completion.stages=2'
DEFENDED = (
    f'{SHORT} model.bottom=8 model.top=8 seeds=2 '
    'attacks=norm_scoring,residual_scoring'
)
SPAMBASE = (
    'data.path={data}/spambase.data data.limit=2600 alone=False'
)
MNIST = (
    'data.path={data}/mnist.npz data.limit=600 data.test_limit=200 '
    'train.epochs=2 train.batch_size=64 seeds=2 alone=False'
)
FASHION = MNIST.replace('mnist.npz', 'fashion_mnist.npz')
DIGITS = 'data.name=digits data.path= data.limit=0 data.test_limit=0'
INVERSION = (
    f'{FASHION} attack.auxiliary=200 attack.model_inversion.shadow_steps=20 '
    'attack.model_inversion.samples=8'
)
MATCHED = (
    f'{DIGITS} {BRIEF} model.name=mlp3 model.options=hidden=(32,16) '
    'model.top=16 train.batch_size=100 seeds=1 attack.mixmatch.iterations=4 '
    'attack.mixmatch.epochs=5 attack.mixmatch.stages=2 defenses=none'
)
CASES = (
    Case(
        'defenses_1', 'quickstart.py',
        f'{DEFENDED} '
        'defenses=dcor,dp_gaussian,dp_weights,fedpass,gafm,kdk,label_dp',
    ),
    Case(
        'defenses_2', 'quickstart.py',
        f'{DEFENDED} defenses=mid,mixup,multi_head,plugvfl,ppdl,precode',
    ),
    Case(
        'defenses_3', 'quickstart.py',
        f'{DEFENDED} defenses=coae,residue_mask,rvfr,vmask '
        'auxiliary.samples=60',
    ),
    Case(
        'gafm_table2', 'gafm/table2.py',
        f'{SPAMBASE} train.epochs=4 seeds=2',
    ),
    Case(
        'kang_vlr', 'kang2022/vlr.py:spambase',
        f'{SPAMBASE} train.epochs=2 seeds=2 defenses=iso '
        'attack.completion.epochs=5 attack.completion.stages=2 '
        'attack.gradient_inversion.steps=20',
        old='kang2022/vlr_spambase.py',
    ),
    Case(
        'kang_vhnn', 'kang2022/vnn.py:vhnn,spambase',
        f'{SPAMBASE} {BRIEF} seeds=2 defenses=marvell '
        'attacks=norm_scoring,direction_scoring,model_completion,model_completion:80',
        old='kang2022/vhnn_spambase.py',
    ),
    Case(
        'kang_table17', 'kang2022/table17.py:vhnn',
        f'{INVERSION}',
        old='kang2022/table17_vhnn.py',
    ),
    Case(
        'mid_fig4_labels', 'mid/fig4.py:dli',
        f'{MNIST} defenses=MID,DG',
        old='mid/fig4_dli.py',
    ),
    Case(
        'mid_fig4_batch', 'mid/fig4.py:bli',
        f'{MNIST} attack.gradient_inversion.steps=20 '
        'attack.gradient_inversion.restarts=2 defenses=CAE,DP-G',
        old='mid/fig4_bli.py',
    ),
    Case(
        'mid_fig5_replacement', 'mid/fig5.py:replacement',
        f'{MNIST} attack.label_replacement.triggered=0.05 defenses=MID',
        old='mid/fig5_replacement.py',
    ),
    Case(
        'mid_fig5_noisy', 'mid/fig5.py:noisy',
        f'{MNIST} attack.noisy_sample.rate=0.05 defenses=RVFR',
        old='mid/fig5_noisy.py',
    ),
    Case(
        'mid_fig5_missing', 'mid/fig5.py:missing',
        f'{MNIST} defenses=DP-L',
        old='mid/fig5_missing.py',
    ),
    Case(
        'mid_cafe', 'mid/cafe.py',
        f'{MNIST} seeds=1 attack.replay_rounds=4 attack.cafe.pool=12 '
        'attack.cafe.batch=6 attack.cafe.steps=10 '
        'model.options=channels=(2,3);hidden=(8,6) defenses=MID,DP-G',
    ),
    Case(
        'mid_fig3_passive', 'mid/fig3.py:pmc',
        f'{MATCHED}',
        old='mid/fig3_pmc.py',
    ),
    Case(
        'mid_fig3_active', 'mid/fig3.py:amc',
        f'{MATCHED}',
        old='mid/fig3_amc.py',
    ),
    Case(
        'plugvfl_fig3', 'plugvfl/fig3.py:fashion_mnist',
        f'{FASHION}',
        old='plugvfl/fig3.py',
    ),
    Case(
        'vmask_table2', 'vmask/table2.py:tm',
        f'{MNIST} {BRIEF} data.limit=1000 auxiliary.samples=160 '
        'attack.repeats=2 '
        '"defenses=VMask,VMask-AS,VMask-RS,VMask-ALLS,FedPass,FedPass both,'
        'KDk,dCor"',
        old='vmask/table2.py',
    ),
    Case(
        'streamed', 'quickstart.py',
        f'{SHORT} data.stream=4 seeds=2 attacks=norm_scoring,mean_scoring '
        'defenses=dp_laplace',
    ),
    Case(
        'stopped_early', 'quickstart.py',
        f'{DEFENDED} train.epochs=12 train.best=True train.patience=2 '
        'data.validation=0.2 train.learning_rate=0.05 defenses=max_norm',
    ),
    Case(
        'two_attackers', 'quickstart.py',
        f'{BRIEF} data.parties=3 seeds=2 attack.party=0 data.split=importance '
        'defenses=gradient_compression attacks=norm_scoring,model_completion '
        'quitting=True',
    ),
    Case(
        'plugvfl_fig4', 'plugvfl/fig4.py',
        f'{FASHION} {BRIEF} attack.completion.stages=1 defenses=PPDL',
    ),
    Case(
        'options', 'quickstart.py',
        f'{BRIEF} seeds=2 defenses=discrete_sgd train.optimizer=momentum '
        'train.schedule=cosine train.remainder=pad train.weight_decay=0.001 '
        'train.learning_rate=0.05 model.norm=batch model.dropout=0.1 '
        'model.aggregation=mean data.scale=minmax data.split=correlation '
        'data.resplit=False attack.completion.norm=batch '
        'attack.completion.schedule=cosine '
        'attack.completion.optimizer=momentum attack.completion.batch_size=4 '
        'attack.completion.bottom_rate=0.1 '
        'attack.completion.standardize=True '
        'attacks=median_scoring,model_completion',
    ),
    Case(
        'images', 'quickstart.py',
        f'{BRIEF} {DIGITS} data.split=left_right data.flips=True '
        'data.shifts=1 train.remainder=keep seeds=2 model.channels=4,8 '
        'model.bottom=16 data.scale=none attack.known=1 '
        'attacks=model_completion,learned_gradient defenses=dp_gaussian',
    ),
    Case(
        'synthetic', 'quickstart.py',
        f'{SHORT} data.name=synthetic seeds=2 '
        'data.options=samples=300;signal=(1,0.5,0.5) data.parties=4 '
        'model.algorithm=vsnn model.aggregation=max defenses=iso '
        'attacks=norm_scoring',
    ),
    Case(
        'gafm_table11', 'gafm/ablations.py:table11',
        f'{SPAMBASE} train.epochs=3 seeds=2 defenses=gafm_marvell',
        old='gafm/table11.py',
    ),
    Case(
        'gafm_table4', 'gafm/table4.py',
        f'{SPAMBASE} train.epochs=3 seeds=2 defenses=gafm',
    ),
    Case(
        'kang_table16', 'kang2022/table16.py:vsnn',
        f'{INVERSION} seeds=1 attacks=model_inversion,constant_image '
        'defenses=mixup,precode',
        old='kang2022/table16_vsnn.py',
    ),
    Case(
        'mid_fig9', 'mid/fig9.py',
        f'{MNIST} attack.label_replacement.triggered=0.05 defenses=MID',
    ),
    Case(
        'plugvfl_fig5', 'plugvfl/fig5.py',
        f'{FASHION} {BRIEF} attack.completion.stages=1 '
        'attacks=active_completion defenses=plugvfl',
    ),
    Case(
        'plugvfl_fig6', 'plugvfl/fig6.py',
        f'{FASHION} {BRIEF} attack.completion.stages=1 '
        'attacks=model_completion defenses=plugvfl',
    ),
    Case(
        'vmask_lenet', 'vmask/table2.py:m',
        f'{MNIST} {BRIEF} seeds=1 attack.repeats=2 auxiliary.samples=160 '
        'defenses=CG',
        old='vmask/table2_m.py',
    ),
    Case(
        'vmask_authors', 'vmask/authors.py:tm',
        f'{MNIST} {BRIEF} seeds=1 data.limit=1000 auxiliary.samples=160 '
        'attack.repeats=2 defenses=VMask',
        old='vmask/authors.py',
    ),
    Case(
        'chunks', 'quickstart.py',
        'train.epochs=3 attack.completion.epochs=5 seeds=3 '
        'attack.completion.stages=2 first_seed=5 seeds_per_chunk=2 '
        'strengths_per_chunk=3 defenses=iso train.measure_every=1 '
        'attack.repeats=2 attack.when=max attack.pool=round '
        'attack.median_scoring.center=batch',
    ),
    Case(
        'quickstart', 'quickstart.py',
    ),
)
