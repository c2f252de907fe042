"""Training: losses, optimizers, and the pass and the object that put them together.

    mod = SetupTrainer(CrossEntropyLoss(), Adam(0.01), [pred_info, label_info])(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    trainer = Trainer(mod, vm, tvm.cpu(), zero_init_param_state=False)
    trainer.xaiver_uniform_init_params()
    loss = trainer.update(images, labels)

Gradients come from `relax.transform.Gradient`. `sentences.txt` is a text to train a small language
model on: a thousand sentences of a small grammar, one a line; lesson 23 reads it.
"""

from __future__ import annotations

from . import loss, optimizer, setup_trainer, trainer, utils
from .setup_trainer import SetupTrainer
from .trainer import Trainer
from .utils import AppendLoss

__all__ = ["AppendLoss", "SetupTrainer", "Trainer", "loss", "optimizer", "setup_trainer",
           "trainer", "utils"]
