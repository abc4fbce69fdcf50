"""
Search for the best settings of a classifier of handwritten digits, first here and then on a pool of two nodes.

The line that searches is scikit-learn's own, the same both times. Needs skyward-sklearn and scikit-learn, whose package
brings the data: 1,797 images of 8 by 8 pixels.
"""

import time

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import skyward as sky

GRID = {"svc__C": [0.3, 1.0, 3.0, 10.0], "svc__gamma": [0.003, 0.01, 0.03]}


def search(name: str) -> GridSearchCV:
    """
    Try every setting on three folds, and tell how long that took.
    """
    images, labels = load_digits(return_X_y=True)
    seen, _, answers, _ = train_test_split(images, labels, random_state=0)
    found = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=3, n_jobs=-1)
    started = time.perf_counter()
    found.fit(seen, answers)
    print(f"{name}: {len(found.cv_results_['params'])} settings in {time.perf_counter() - started:.1f} s")
    return found


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    _, unseen, _, answers = train_test_split(images, labels, random_state=0)

    here = search("processes of joblib")
    with sky.integrations.ScikitLearnPool(provider=sky.Local(), nodes=2, console="silent") as pool:
        there = search("nodes of a pool")
        scores = cross_val_score(RandomForestClassifier(50, random_state=0), images, labels, cv=3, n_jobs=-1)
        print(f"a forest, on {pool.current_nodes()} nodes: {scores.mean():.3f}")

    print(f"best: C={there.best_params_['svc__C']:g}, gamma={there.best_params_['svc__gamma']:g}")
    same = here.best_params_ == there.best_params_ and here.best_score_ == there.best_score_
    print(f"the same found: {same} | unseen images read correctly: {there.score(unseen, answers):.1%}")


if __name__ == "__main__":
    main()
