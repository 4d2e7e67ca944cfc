"""Scores of Gaussian Bayesian networks, and the families they are made of.

A new score is one small file like `scorers/bic.py`; anything callable on a `Block` will do, wherever it lives.
Equation numbers are the labels in the paper's source: eq. (32) is the RNML code length, eq. (33) its Stirling form.
"""

from scorers.aic import AIC
from scorers.aicc import AICc
from scorers.base import Block, Scorer
from scorers.bge import BGe
from scorers.bic import BIC
from scorers.certify import certify
from scorers.ebic import EBIC
from scorers.families import Families, score_table
from scorers.gmdl import GMDL
from scorers.hqic import HQIC
from scorers.mdl import MDL
from scorers.network import network_score
from scorers.qnml import QNML
from scorers.rnml import RNML
from scorers.rnml_centred import RNMLCentred
from scorers.rnml_gamma import RNMLGamma
from scorers.rnml_printed_c import RNMLPrintedC
from scorers.rnml_stirling import RNMLStirling
from scorers.without_intercept import WithoutIntercept
from scorers.zellner_g import ZellnerG

__all__ = [
    "AIC",
    "BIC",
    "EBIC",
    "GMDL",
    "HQIC",
    "MDL",
    "QNML",
    "RNML",
    "AICc",
    "BGe",
    "Block",
    "Families",
    "RNMLCentred",
    "RNMLGamma",
    "RNMLPrintedC",
    "RNMLStirling",
    "Scorer",
    "WithoutIntercept",
    "ZellnerG",
    "certify",
    "network_score",
    "score_table",
]
