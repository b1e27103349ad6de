"""*The TCP-modified Engset Model Revisited*, reproduced: Tables 1 to 10, Figures 3 and 8 to 16.

``published`` holds the paper's figures as data, ``settings`` reads its names of settings,
``runs`` simulates them; each other module is a part of the paper and says which settings it wants
and what its sections are.
"""
