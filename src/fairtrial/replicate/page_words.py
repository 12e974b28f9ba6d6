"""The page's prose: what holds whatever the records say."""

from __future__ import annotations


def flowing(text: str) -> str:
    return " ".join(text.split())


OPENING = flowing("""
Five course reports train small transformers and compare architectures. Each comparison is one run against one run. Here
every published figure and every claim gets a fair trial: several seeds, the same first weights and batches for both
sides, an audit of every variant, and test items that do not stand in the training text. One run cannot show what these
reports wished to show, and their authors had a course's time for it; what follows is meant as the experiment that they
would have run with more.
""")

QUICK = flowing("""
**This is the quick version**, on the embedded corpus and with a few training steps. It shows how the page is made; it
says nothing of the reports.
""")

FIGURES = flowing("""
*Published* is the report's number. *Ours* is the mean over seeds with its 95% interval, measured as the report
measured: accuracy on all test items, at the epoch that is best on the test set where the report did that; perplexity
over windows side by side; for r4 the mean of per-sentence perplexities or losses. *Place* tells where the published
figure lies: `inside` the range of our seeds, `near` it (where one more run would fall, 95%), or `below` or `above`.
*Honest* is the same recipe measured as one should: a tenth of the training text is held back, the weights are those
that do best on it (classifiers after any epoch, language models after any 50 steps), the test sets are scored once, on
clean items, every token once at full context. So these are other trainings, on nine tenths of the text: the studies
called `-chosen` below.
""")

COUNTING = flowing("""
Models that only count words (in bold) on the same training text and test items: accuracy in per cent, exact perplexity
of all items where no other number of items is told. *Stand in train* counts exact and near copies.
A transformer that a count of words beats has not shown that its architecture matters here. Variants with a red passport
are left out. What can be reached on these data, and by what, stands in docs/best.md.
""")

SENTENCES = flowing("""
r4 trains on 61,530 sentences that are not at hand. Ours are trained on its dev file, so beside its *dev* stands our
score of its test file, and beside its *train* our score of {} sentences of that training text, drawn once by a named
stream, in batches as in training. A variant whose passport is red is scored in such batches on both. *Normal*, *weird*
and *long* are single sentences of the report, each scored by itself; they are not part of fairtrial and come from
DIR/r4-samples.tsv, where somebody has written them down. The levels cannot be compared; the order of the variants can.
""")

CURVES = flowing("""
Two reports print numbers as training went on. Each cell of *ours* is the mean over seeds, its 95% interval, and the
place of the published number, as above. The reports looked at the test sets while they trained; ours do so for these
curves and for figures that are called best on test. r1 prints its first perplexities at iteration 1; ours, as r2's, are
those before the first step. The figures begin after it.
""")

NOT_RETRIED = flowing("""
Published numbers beside which no figure of ours stands as the same measure, and why.
""")

PARAMETERS = flowing("""
*Matrices* are the token embedding and the weights of attention and feed-forward layers, without biases, positions,
norms, classifier and output layer: r0 counts so. The output layer is the largest matrix of a decoder.
""")

SETTINGS = flowing("""
What the reports say of their models and training, beside what the recipes and records of ours have.
""")

PRINTED = flowing("""
Out of 750 test sentences only some accuracies can come. What the reports print, checked digit by digit (r2 also prints
a training perplexity of 454.79 at iteration 600 of a run of 500: it is the figure of its H. Bush test set):
""")

FLAWS = flowing("""
Two reports describe one thing and compute another (r0, r2); their code is repeated here, beside what was meant. Of r4
only the words are at hand: *by batch* is our reconstruction, the form that shows both symptoms it tells of, a better
score in batches and a breakdown on single sentences (the report's breakdown is larger still). The passport tells them
apart. A red passport means that the variant's number says nothing of its idea.
""")

STREAM = flowing("""
r0's blocks add to the normed stream (`normed-stream` in examples/reports/r0_flaws.py). It sees nothing that it should
not, so the failure is amber: its score counts, but as that of a post-norm network (`shape.norm_place = "post"`, which
gives the same numbers and passes under its own name), not of the pre-norm blocks that the report describes.
""")

ALONE = flowing("""
The same sentences scored in batches as in training, and one by one, by the same trained models (means of per-sentence
perplexities; over seeds the mean of logarithms). An honest model does not notice:
""")

FINGERPRINTS = flowing("""
Each row stands for the records of one variant: its resolved recipe, the sha256 over the trained weights of its seeds in
order, and the code that trained them. The same recipe, seed, code, torch and machine give the same weights, bit by bit.
""")

LEFT_OUT = (
    "r4's fine-tuning is retried with MiniLM (`--fine-tuning`), and only its comparisons: roberta-base is not at hand",
    "r4's attention puzzles have exact answers, not trials: `fairtrial puzzle`",
    "losses of single batches and seconds of an epoch, which r1 and r2 print: one batch, and another machine",
    "pictures of attention: a map of one sentence is no figure; what can be measured of them is above",
)
