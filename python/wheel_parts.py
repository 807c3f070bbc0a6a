"""What the wheel is linked with besides this machine's libraries: fetched from Debian's mirror by apt, kept in a cache.

Binary packages are unpacked, never installed. Libraries of which Debian has no archive that can go into a shared library
(fmt, libzip, protobuf) are compiled from Debian's own source packages, its patches applied.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hlo-replay"
HERE = "bookworm"  # the Debian that compiles
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's names of machines
ARCHIVES = {
    "fmtlib": ["-DFMT_DOC=OFF", "-DFMT_TEST=OFF"],
    "libzip": [*(f"-DENABLE_{no}=OFF" for no in ("COMMONCRYPTO", "GNUTLS", "MBEDTLS", "OPENSSL", "BZIP2", "LZMA")),
               *(f"-DBUILD_{no}=OFF" for no in ("TOOLS", "REGRESS", "EXAMPLES", "DOC"))],
    "protobuf": ["-Dprotobuf_BUILD_TESTS=OFF", "-Dprotobuf_BUILD_PROTOC_BINARIES=OFF"],
}


def said(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def fetched(suite, machine, kind, packages, unpack):
    """A cached folder that `unpack(work, out)` fills with what apt got of those packages of that Debian."""
    home = CACHE / f"{suite}-{machine}-{kind}-{'+'.join(packages)}"
    if home.is_dir():
        return home
    mirror = said("apt-get", "indextargets", "--format", "$(SITE)", "Identifier: Packages", f"Codename: {HERE}",
                  "Component: main").split()[0]
    arch = DEBIAN[machine]
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        work = pathlib.Path(made)
        for folder in ("lists/partial", "cache/archives/partial", "got", "out"):
            (work / folder).mkdir(parents=True)
        signed = f"signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch={arch}"
        (work / "sources.list").write_text(
            "".join(f"{deb} [{signed}] {mirror} {suite} main\n" for deb in ("deb", "deb-src")))
        apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={work}/lists", "-o", f"Dir::Cache={work}/cache",
               "-o", f"Dir::Etc::sourcelist={work}/sources.list", "-o", "Dir::Etc::sourceparts=-",
               "-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=root",
               "-o", f"APT::Architecture={arch}", "-o", f"APT::Architectures={arch}"]
        subprocess.run([*apt, "update"], check=True)
        verb = ["source", "--download-only"] if kind == "source" else ["download"]
        subprocess.run([*apt, *verb, *packages], check=True, cwd=work / "got")
        unpack(work / "got", work / "out")
        (work / "out").rename(home)
    return home


def unpacked(suite, machine, *packages):
    """Folder with the files of those binary packages; links that begin at the root are made to stay inside."""
    def unpack(got, out):
        for package in sorted(got.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, out], check=True)
        for link in out.rglob("*"):
            if link.is_symlink() and os.readlink(link).startswith("/"):
                aim = os.path.relpath(out / os.readlink(link).lstrip("/"), link.parent)
                link.unlink()
                link.symlink_to(aim)
    return fetched(suite, machine, "files", packages, unpack)


def source(package):
    """Folder with the source of a package of the Debian that compiles, patched as Debian has it."""
    def unpack(got, out):
        subprocess.run(["dpkg-source", "--no-check", "-x", next(got.glob("*.dsc")), out / "source"], check=True,
                       stdout=subprocess.DEVNULL)
    return fetched(HERE, os.uname().machine, "source", [package], unpack) / "source"


def older_glibc(machine):
    """Folder with Debian 11's glibc 2.31 and libgcc to link against; older_glibc.cc has the functions younger than 2.28."""
    home = unpacked("bullseye", machine, "libc6", "libc6-dev", "libgcc-s1")
    if machine == "x86_64" and not (home / "lib64").exists():
        (home / "lib64").symlink_to("lib/x86_64-linux-gnu")  # where libc.so says that the loader is
    return home


def other_machine(machine):
    """Folder with what is compiled and linked for another machine than this one: LLVM, zlib, zstd, CPython's headers."""
    return unpacked(HERE, machine, "llvm-19-dev", "zlib1g-dev", "libzstd-dev", "libpython3.11-dev")


def archives(machine, prefix=""):
    """Folder with libfmt.a, libzip.a, libprotobuf.a and older_glibc.o, by the compilers PREFIXg++ and PREFIXgcc."""
    home = CACHE / f"archives-{machine}"
    home.mkdir(parents=True, exist_ok=True)
    subprocess.run([f"{prefix}g++", "-std=c++20", "-O2", "-fPIC", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-c",
                    ROOT / "python" / "older_glibc.cc", "-o", home / "older_glibc.o"], check=True)
    for package, options in ARCHIVES.items():
        library = home / f"lib{package.removeprefix('lib').removesuffix('lib')}.a"
        if library.exists():
            continue
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            cross = []
            if prefix:
                root = other_machine(machine) / "usr"
                cross = ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}",
                         f"-DZLIB_LIBRARY={root}/lib/{machine}-linux-gnu/libz.a", f"-DZLIB_INCLUDE_DIR={root}/include",
                         *(f"-DCMAKE_{language}_FLAGS=-isystem {root}/include/{machine}-linux-gnu" for language in ("C", "CXX"))]
            subprocess.run(["cmake", "-S", source(package), "-B", made, "-G", "Ninja", "-Wno-dev", "--no-warn-unused-cli",
                            "--log-level=ERROR", "-DCMAKE_BUILD_TYPE=Release",
                            "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DBUILD_SHARED_LIBS=OFF",
                            "-DCMAKE_CXX_VISIBILITY_PRESET=hidden", "-DCMAKE_C_VISIBILITY_PRESET=hidden",
                            f"-DCMAKE_C_COMPILER={prefix}gcc", f"-DCMAKE_CXX_COMPILER={prefix}g++", *cross, *options],
                           check=True, stdout=subprocess.DEVNULL)
            target = {"fmtlib": "fmt", "libzip": "zip", "protobuf": "libprotobuf"}[package]
            subprocess.run(["cmake", "--build", made, "--target", target, "-j2"], check=True, stdout=subprocess.DEVNULL)
            shutil.copy(next(pathlib.Path(made).rglob(library.name)), library)
    return home
