"""What python/wheel_symbols.py says of binaries that ask for too much, and python/older_glibc.cc against it.

wheel_symbols_test.py SOURCE_FOLDER
"""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "python"))
import wheel_symbols

FAILED = []
passed = 0


def check(holds, what):
    global passed
    if holds:
        passed += 1
    else:
        FAILED.append(what)
        print("FAILED:", what)


def faults_of(code, *words):
    """Complaints about one shared library that is made of that code."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        (folder / "code.cc").write_text(code)
        subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-fno-builtin", "-shared", "-o", folder / "libof.so",
                        folder / "code.cc", *words], check=True)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            found = wheel_symbols.faults(folder)
        check("libof.so" in said.getvalue(), "a line about the library")
        return found


NEWER = """
#include <cmath>
#include <cstdlib>
extern "C" double f(double x) { return exp(x) + pow(x, x) + arc4random(); }
"""
glibc = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
found = faults_of(NEWER, "-lm")
check(any("exp@GLIBC_2.29" in fault and "GLIBC_2.28" in fault for fault in found), f"exp of 2.29 is told: {found}")
check(glibc < (2, 36) or any("arc4random@GLIBC_2.36" in fault for fault in found), f"arc4random of 2.36 is told: {found}")
found = faults_of(NEWER, SOURCE / "python" / "older_glibc.cc", "-lm")
check(not found, f"with older_glibc.cc nothing newer is asked for: {found}")
found = faults_of('extern "C" int nobody(); extern "C" int f() { return nobody(); }')
check(found == ["libof.so asks for nobody, which is defined nowhere"], f"what nobody has is told: {found}")
found = faults_of('#include <string>\nextern "C" void f(std::string& s) { s += "x"; }')
check(any("libstdc++.so.6" in fault for fault in found), f"the C++ library is told: {found}")

# What older_glibc.cc has is what the system's functions are.
SAME = """
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
double systems(const char* name, double x) { return reinterpret_cast<double (*)(double)>(dlsym(RTLD_NEXT, name))(x); }
int main() {
  const double numbers[] = {0.0, -0.0, 1.0, 0.7, -3.5, 709.9, -745.2, 1e-310, INFINITY, -INFINITY};
  auto differ = [](double a, double b) { return std::memcmp(&a, &b, sizeof a) && !(std::isnan(a) && std::isnan(b)); };
  for (double x : numbers) {
    if (differ(exp(x), systems("exp", x)) || differ(log(x), systems("log", x)) || differ(log2(x), systems("log2", x)))
      return std::printf("%g differs\\n", x);
    for (double y : numbers)
      if (differ(pow(x, y), reinterpret_cast<double (*)(double, double)>(dlsym(RTLD_NEXT, "pow"))(x, y)))
        return std::printf("pow(%g, %g) differs\\n", x, y);
  }
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  for (int milliseconds : {0, 1, 30, 300}) {
    auto start = std::chrono::steady_clock::now();
    bool woken = condition.wait_for(lock, std::chrono::milliseconds(milliseconds), [] { return false; });
    auto took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (woken || took < milliseconds || took > milliseconds + 5000) return std::printf("%d ms took %g\\n", milliseconds, took);
  }
  return arc4random() == arc4random() && arc4random() == arc4random();
}
"""
with tempfile.TemporaryDirectory() as made:
    program = pathlib.Path(made) / "same"
    program.with_suffix(".cc").write_text(SAME)
    subprocess.run(["g++", "-std=c++20", "-O1", "-fno-builtin", "-o", program, program.with_suffix(".cc"),
                    SOURCE / "python" / "older_glibc.cc"], check=True)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    check(ran.returncode == 0, f"older_glibc.cc: exit code {ran.returncode} {ran.stdout}")
print(f"{passed} passed, {len(FAILED)} failed")
sys.exit(1 if FAILED else 0)
