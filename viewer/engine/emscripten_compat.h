// What the C++ library of Debian's emscripten (LLVM 14's) lacks of C++20; included in front of every source of the
// engine.
#pragma once
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>

namespace std {  // NOLINT: a name that is missing there

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> && is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

template <class T>
enable_if_t<is_array_v<T>, unique_ptr<T>> make_unique_for_overwrite(size_t count) {
  return unique_ptr<T>(new remove_extent_t<T>[count]);
}

// Decimal text to a float: musl's strtod and strtof round right. As the standard has it, nothing is stored where the
// number does not fit.
template <class T>
enable_if_t<is_floating_point_v<T>, from_chars_result> from_chars(const char* first, const char* last, T& value) {
  const char* at = first;
  if (at != last && *at == '-') ++at;
  if (at == last || !((*at >= '0' && *at <= '9') || *at == '.' || *at == 'i' || *at == 'I' || *at == 'n' || *at == 'N'))
    return {first, errc::invalid_argument};
  // strtod takes hexadecimal numbers, which are two numbers here: `0`, and something else.
  const char* stop = at;
  while (stop != last && *stop != 'x' && *stop != 'X') ++stop;
  string copy(first, stop);
  char* end = nullptr;
  errno = 0;
  T read;
  if constexpr (is_same_v<T, float>)
    read = strtof(copy.c_str(), &end);
  else
    read = strtod(copy.c_str(), &end);
  if (end == copy.c_str()) return {first, errc::invalid_argument};
  from_chars_result out{first + (end - copy.c_str()), errc()};
  if (errno == ERANGE)
    out.ec = errc::result_out_of_range;
  else
    value = read;
  return out;
}

}  // namespace std
