"""Renders the conda recipe as conda-forge does, and prints name and version of its package."""

from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig

VARIANTS = """
c_compiler: [gcc]
c_stdlib: [sysroot]
c_stdlib_version: ["2.17"]
rust_compiler: [rust]
"""
"""Compilers, which conda-forge sets for all packages."""

recipe = Stage0Recipe.from_yaml(Path("packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
(variant,) = recipe.render(VariantConfig.from_yaml(VARIANTS))
package = variant.recipe.to_dict()["package"]
print(package["name"], package["version"])
