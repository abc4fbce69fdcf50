"""
Have joblib and scikit-learn run on nodes what they run side by side.
"""

from math import factorial

from joblib import Parallel, delayed
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

import skyward as sky

if __name__ == "__main__":
    with sky.integrations.JoblibPool(provider=sky.Local(), nodes=1, concurrency=2) as pool:
        results = Parallel(n_jobs=-1)(delayed(factorial)(x) for x in range(6))

    X, y = load_iris(return_X_y=True)
    grid = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, n_jobs=-1, cv=3)
    with sky.integrations.ScikitLearnPool(provider=sky.Local(), nodes=2, concurrency=1):
        grid.fit(X, y)

    with sky.ComputePool(provider=sky.Local()) as pool, sky.integrations.sklearn_backend(pool):
        again = Parallel(n_jobs=-1)(delayed(factorial)(x) for x in range(3))

    print(f"{results} {again} | better than 0.9: {grid.best_score_ > 0.9}")
