import hashlib
import importlib
import sys
import threading
import timeit
import types
import zipfile
from pathlib import Path

import pytest

from skyward.engine.source.user_modules import LocalModules, ModuleFile
from skyward.errors import ConfigError
from tests.engine.project import load, paths, project, write

__all__ = ["project"]


@pytest.fixture
def modules(project):
    """
    Find local modules, those of the test run itself taken already.
    """
    local = LocalModules()
    local.new_files()
    return local


class TestNewFiles:
    def test_package_with_its_parents(self, project, modules):
        """
        A loaded submodule travels with the `__init__.py` of the packages above it, each file once.
        """
        write(project, {"top_a/__init__.py": "", "top_a/sub/__init__.py": "", "top_a/sub/leaf.py": "x = 1"})
        load("top_a.sub.leaf")
        files = modules.new_files()
        assert paths(files) == ["top_a/__init__.py", "top_a/sub/__init__.py", "top_a/sub/leaf.py"]
        assert files[2] == ModuleFile(path="top_a/sub/leaf.py", digest=hashlib.sha256(b"x = 1").digest(), data=b"x = 1")
        assert files[2].data == b"x = 1"
        assert modules.new_files() == ()

    def test_only_what_is_loaded(self, project, modules):
        """
        A module beside a loaded one stays here until it is loaded itself.
        """
        write(project, {"first_b.py": "", "second_b.py": ""})
        load("first_b")
        assert paths(modules.new_files()) == ["first_b.py"]
        load("second_b")
        assert paths(modules.new_files()) == ["second_b.py"]

    def test_installed_and_standard_modules_stay(self, project):
        """
        The standard library, installed packages, Skyward and `__main__` never travel.
        """
        load("json.tool", "cloudpickle", "skyward.link.frames")
        script = Path(__file__).relative_to(Path.cwd()) if Path(__file__).is_relative_to(Path.cwd()) else Path(__file__)
        found = paths(LocalModules().all_files())
        assert "/".join(script.parts) in found or script.name in found
        tops = {path.split("/")[0].removesuffix(".py") for path in found}
        assert tops.isdisjoint(
            {"json", "cloudpickle", "attr", "pytest", "_pytest", "numpy", "skyward", "__main__", "os"}
        )

    def test_site_packages_anywhere_stay(self, project, modules, monkeypatch):
        """
        A folder called site-packages or dist-packages is for installed packages on whatever path it lies.
        """
        for name in ("site-packages", "dist-packages"):
            module = f"installed_{name[:4]}"
            write(project, {f"{name}/{module}.py": ""})
            monkeypatch.syspath_prepend(str(project / name))
            load(module)
        assert modules.new_files() == ()

    def test_name_of_the_standard_library_in_a_project(self, project, modules):
        """
        A project's own module counts as local even where it has the name of a standard one.
        """
        write(project, {"this.py": "mine = 1"})
        sys.modules.pop("this", None)
        load("this")
        assert paths(modules.new_files()) == ["this.py"]

    def test_namespace_packages(self, project, modules):
        """
        A package without `__init__.py` is made by the paths of what lies in it.
        """
        write(project, {"space_c/inner/leaf.py": ""})
        load("space_c.inner.leaf")
        assert paths(modules.new_files()) == ["space_c/inner/leaf.py"]

    def test_placed_by_name(self, project, modules):
        """
        A module loaded under a name that does not match its path is placed by its name.
        """
        write(project, {"odd/place-1.py": "y = 2"})
        spec = importlib.util.spec_from_file_location("suite.cases.named_d", project / "odd/place-1.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        assert paths(modules.new_files()) == ["suite/cases/named_d.py"]

    def test_extension_modules(self, project, modules):
        """
        A compiled module outside of site-packages travels under its own suffix.
        """
        suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
        (project / f"fast_e{suffix}").write_bytes(b"\x7fELF")
        module = types.ModuleType("pack_e.fast_e")
        module.__file__ = str(project / f"fast_e{suffix}")
        sys.modules["pack_e.fast_e"] = module
        assert paths(modules.new_files()) == [f"pack_e/fast_e{suffix}"]

    def test_zipped_and_fileless_modules_are_skipped(self, project, modules, monkeypatch):
        """
        Modules from an archive, made by hand, or that are no modules at all, are passed over.
        """
        with zipfile.ZipFile(project / "lib.zip", "w") as archive:
            archive.writestr("zipped_f.py", "")
        monkeypatch.syspath_prepend(str(project / "lib.zip"))
        load("zipped_f")
        monkeypatch.setitem(sys.modules, "made_f", types.ModuleType("made_f"))
        monkeypatch.setitem(sys.modules, "none_f", None)
        monkeypatch.setitem(sys.modules, "odd_f", 3)
        assert modules.new_files() == ()

    def test_lazy_modules_stay_lazy(self, project, modules):
        """
        Looking for files does not load a module that loads itself at first use.
        """
        write(project, {"lazy_g.py": "raise RuntimeError('loaded')"})
        spec = importlib.util.find_spec("lazy_g")
        loader = importlib.util.LazyLoader(spec.loader)
        spec.loader = loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["lazy_g"] = module
        loader.exec_module(module)
        assert paths(modules.new_files()) == ["lazy_g.py"]

    def test_package_data_below_a_mebibyte(self, project, modules):
        """
        Files that lie directly in a loaded package travel with it, unless they have 1 MiB or more together.
        """
        write(project, {"small_h/__init__.py": "", "small_h/words.txt": "a b", "small_h/deep/far.txt": ""})
        write(project, {"small_h/.hidden": "", "small_h/other.py": "", "big_h/__init__.py": ""})
        (project / "big_h/weights.bin").write_bytes(bytes(1 << 20))
        load("small_h", "big_h")
        assert paths(modules.new_files()) == ["big_h/__init__.py", "small_h/__init__.py", "small_h/words.txt"]

    def test_package_data_that_lies_elsewhere(self, project, modules, tmp_path_factory):
        """
        A link that leads out of the package's folder stays here, wherever it leads.
        """
        secret = tmp_path_factory.mktemp("ssh") / "id_ed25519"
        secret.write_text("PRIVATE")
        write(project, {"link_h/__init__.py": "", "link_h/words.txt": "a b"})
        (project / "link_h/more.txt").symlink_to(secret)
        (project / "link_h/same.txt").symlink_to("words.txt")
        load("link_h")
        assert paths(modules.new_files()) == ["link_h/__init__.py", "link_h/same.txt", "link_h/words.txt"]

    def test_excludes(self, project):
        """
        What the excludes name stays here.
        """
        modules = LocalModules(excludes=["tests", "keep_i/secret*"])
        modules.new_files()
        write(project, {"keep_i/__init__.py": "", "keep_i/secret.py": "", "keep_i/tests/__init__.py": ""})
        load("keep_i.secret", "keep_i.tests")
        assert paths(modules.new_files()) == ["keep_i/__init__.py"]

    def test_module_replaced_by_another(self, project, modules):
        """
        Another module under a name that was sent already is sent too.
        """
        write(project, {"a/same_j.py": "x = 1", "b/same_j.py": "x = 2"})
        for folder in ("a", "b"):
            sys.modules.pop("same_j", None)
            spec = importlib.util.spec_from_file_location("same_j", project / folder / "same_j.py")
            sys.modules["same_j"] = importlib.util.module_from_spec(spec)
            sys.modules[f"marker_j_{folder}"] = types.ModuleType("marker")
            assert [file.data for file in modules.new_files()] == [(project / folder / "same_j.py").read_bytes()]

    def test_large_file_is_refused(self, project, modules):
        """
        A module's file over 64 MiB is refused with its path and what to do, at every call.
        """
        with (project / "huge_k.py").open("wb") as file:
            file.truncate((64 << 20) + 1)
        module = types.ModuleType("huge_k")
        module.__file__ = str(project / "huge_k.py")
        sys.modules["huge_k"] = module
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"huge_k\.py' has 64 MiB.*excludes"):
                modules.new_files()

    def test_it_costs_next_to_nothing(self, modules):
        """
        Where no module was loaded meanwhile a call takes at most two microseconds.
        """
        assert min(timeit.repeat(modules.new_files, number=1000, repeat=20)) / 1000 <= 2e-6

    def test_delivery_comes_before_the_news(self, project, modules):
        """
        While one thread delivers files, no other thread hears that there is nothing new.
        """
        write(project, {"slow_l.py": ""})
        load("slow_l")
        delivering, go_on, order = threading.Event(), threading.Event(), []

        def deliver(files):
            delivering.set()
            assert go_on.wait(10)
            order.append("delivered")

        def second():
            modules.new_files()
            order.append("told")

        one = threading.Thread(target=modules.new_files, args=(deliver,))
        two = threading.Thread(target=second)
        one.start()
        assert delivering.wait(10)
        two.start()
        two.join(0.05)
        go_on.set()
        one.join()
        two.join()
        assert order == ["delivered", "told"]

    def test_failed_delivery_is_tried_again(self, project, modules):
        """
        Files that could not be delivered are new at the next call.
        """
        write(project, {"again_m.py": ""})
        load("again_m")
        with pytest.raises(OSError, match="no way"):
            modules.new_files(lambda files: (_ for _ in ()).throw(OSError("no way")))
        assert paths(modules.new_files()) == ["again_m.py"]

    def test_other_threads_import(self, project, modules):
        """
        Calls are safe while other threads import, and every module is found in the end.
        """
        names = [f"many_n{number}" for number in range(300)]
        write(project, {f"{name}.py": "" for name in names})
        importlib.invalidate_caches()
        threads = [threading.Thread(target=load, args=names[start::3]) for start in range(3)]
        for thread in threads:
            thread.start()
        found = []
        while any(thread.is_alive() for thread in threads):
            found += paths(modules.new_files())
        found += paths(modules.new_files())
        assert sorted(found) == sorted(f"{name}.py" for name in names)


class TestAllFilesAndRefresh:
    def test_fresh_node_gets_all(self, project, modules):
        """
        All files are returned however often, and what they found first still counts as new.
        """
        write(project, {"one_o.py": "", "two_o.py": ""})
        load("one_o")
        modules.new_files()
        load("two_o")
        assert {"one_o.py", "two_o.py"} <= set(paths(modules.all_files()))
        assert {"one_o.py", "two_o.py"} <= set(paths(modules.all_files()))
        assert paths(modules.new_files()) == ["two_o.py"]

    def test_refresh_returns_the_changed(self, project, modules):
        """
        Refreshing returns files whose contents changed and new data of packages, each once.
        """
        write(project, {"pack_p/__init__.py": "", "pack_p/mod.py": "x = 1", "pack_p/same.py": ""})
        load("pack_p.mod", "pack_p.same")
        modules.new_files()
        assert modules.refresh() == ()
        write(project, {"pack_p/mod.py": "x = 2", "pack_p/new.txt": "n"})
        assert [(file.path, file.data) for file in modules.refresh()] == [
            ("pack_p/mod.py", b"x = 2"),
            ("pack_p/new.txt", b"n"),
        ]
        assert modules.refresh() == ()
        assert b"x = 2" in [file.data for file in modules.all_files()]

    def test_deleted_file_is_kept(self, project, modules):
        """
        A file that went away after its module was loaded is still there for fresh nodes.
        """
        write(project, {"gone_q.py": "x = 1"})
        load("gone_q")
        modules.new_files()
        (project / "gone_q.py").unlink()
        assert modules.refresh() == ()
        assert "gone_q.py" in paths(modules.all_files())
