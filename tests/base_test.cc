// Interners, names, element types, literals' text.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/base/checked.h"
#include "ir/base/checksum.h"
#include "ir/base/source.h"
#include "ir/base/stack_guard.h"
#include "ir/literal.h"
#include "ir/module.h"

namespace hlo {
namespace {

TEST(StringInterner, GivesOneIdAContent) {
  StringInterner s;
  std::vector<StrId> ids;
  for (int i = 0; i < 20000; ++i) ids.push_back(s.intern("name." + std::to_string(i)));
  for (int i = 0; i < 20000; ++i) {
    EXPECT_EQ(s.intern("name." + std::to_string(i)), ids[static_cast<size_t>(i)]);
    EXPECT_EQ(s[ids[static_cast<size_t>(i)]], "name." + std::to_string(i));
  }
  EXPECT_EQ(s.size(), 20000u);
  EXPECT_FALSE(s.find("other").valid());
}

TEST(Checksum, IsZlibs) {
  EXPECT_EQ(checksum_of(""), 0u);
  EXPECT_EQ(checksum_of("123456789"), 0xCBF43926u);  // the check value of CRC-32
  EXPECT_EQ(checksum_of("The quick brown fox jumps over the lazy dog"), 0x414FA339u);
}

TEST(Checked, RemembersWhatDoesNotFit) {
  EXPECT_EQ((Checked(3) * 4 + 5).value("x"), 17);
  EXPECT_EQ((Checked(-3) * 4).value("x"), 0);  // as dimensions count
  Checked large = Checked(int64_t{1} << 62) * 2;
  EXPECT_FALSE(large.fits());
  EXPECT_FALSE((large + 1).fits());
  EXPECT_FALSE((Checked(INT64_MAX - 1) + 1).fits());
  EXPECT_FALSE(divided(large, 8).fits());
  EXPECT_EQ(large.capped(), INT64_MAX);
  EXPECT_EQ((large * 0).value("x"), 0);
  EXPECT_EQ(divided(Checked(9), 8).value("x"), 2);
  EXPECT_THROW(large.value("the array"), Failure);
}

// Frames of 1 kB or so; the compiler may not make a loop of it.
int64_t descend(int64_t depth) {  // NOLINT(misc-no-recursion)
  check_stack("this test");
  volatile char frame[1000];
  frame[depth % 1000] = 1;
  return depth == 0 ? frame[0] : descend(depth - 1) + frame[depth % 1000];
}

TEST(StackGuard, RefusesBeforeTheStackEnds) {
  EXPECT_GT(descend(100), 0);
  EXPECT_THROW(descend(int64_t{1} << 40), Failure);
}

TEST(StringInterner, NumbersFarAheadAndSpelledOddly) {
  StringInterner s;
  StrId far = s.intern("x.5000000"), odd = s.intern("x.07"), plain = s.intern("x.7"), bare = s.intern(".7"),
        zero = s.intern("x.0");
  EXPECT_NE(odd, plain);
  for (int i = 0; i < 100000; ++i) s.intern("x." + std::to_string(i * 60));
  EXPECT_EQ(s.intern("x.5000000"), far);
  EXPECT_EQ(s.find("x.5000000"), far);
  EXPECT_EQ(s.find("x.07"), odd);
  EXPECT_EQ(s.find(".7"), bare);
  EXPECT_EQ(s.intern("x.0"), zero);
  EXPECT_EQ(s[s.find("x.5999940")], "x.5999940");
  EXPECT_FALSE(s.find("x.123456").valid());
  EXPECT_FALSE(s.find("y.1").valid());
}

// Examples of xla/service/name_uniquer.cc's rules.
TEST(NameUniquer, CountsAsXlaDoes) {
  NameUniquer n;
  EXPECT_EQ(n.unique("add"), "add");
  EXPECT_EQ(n.unique("add"), "add.1");
  EXPECT_EQ(n.unique("add"), "add.2");
  NameUniquer m;
  EXPECT_EQ(m.unique("add.5"), "add.5");
  EXPECT_EQ(m.unique("add"), "add");
  EXPECT_EQ(m.unique("add.5"), "add.1");
  EXPECT_EQ(m.unique("f32"), "f32_");
  EXPECT_EQ(m.unique("1x"), "_x");
  EXPECT_EQ(m.unique("a b"), "a_b");
}

TEST(ElementType, NarrowFloatsRoundTrip) {
  for (int t = 0; t < kElementTypeCount; ++t) {
    ElementType type = static_cast<ElementType>(t);
    const FloatFormat* f = float_format(type);
    if (!f) continue;
    int bits = type_bits(type);
    for (uint32_t v = 0; v < (1u << bits); ++v) {
      double d = decode_float(*f, v);
      if (std::isnan(d)) {
        EXPECT_TRUE(f->has_nan) << type_name(type) << " " << v;
        EXPECT_TRUE(std::isnan(decode_float(*f, encode_float(*f, d))));
      } else {
        EXPECT_EQ(encode_float(*f, d), v) << type_name(type);
      }
    }
  }
}

TEST(ElementType, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.00390625f), 0x3f80);  // half way between 1 and the next: even
  EXPECT_EQ(f32_to_bf16(1.01171875f), 0x3f82);
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(5.9604645e-8f), 0x0001);
  const FloatFormat* e4m3fn = float_format(ElementType::F8E4M3FN);
  EXPECT_EQ(decode_float(*e4m3fn, encode_float(*e4m3fn, 448.0)), 448.0);
  EXPECT_TRUE(std::isnan(decode_float(*e4m3fn, encode_float(*e4m3fn, 1e6))));
  const FloatFormat* f4 = float_format(ElementType::F4E2M1FN);
  EXPECT_EQ(decode_float(*f4, encode_float(*f4, 100.0)), 6.0);
}

TEST(Literal, TextIsXlas) {
  auto text = [](ElementType type, auto v) {
    std::string out;
    append_element(out, type, &v);
    return out;
  };
  EXPECT_EQ(text(ElementType::F32, 0.1f), "0.1");
  EXPECT_EQ(text(ElementType::F32, 123456789.0f), "123456792");
  EXPECT_EQ(text(ElementType::F32, -0.0f), "-0");
  EXPECT_EQ(text(ElementType::F64, 1e300), "1e+300");
  EXPECT_EQ(text(ElementType::BF16, f32_to_bf16(0.1f)), "0.1001");
  EXPECT_EQ(text(ElementType::F32, INFINITY), "inf");
  EXPECT_EQ(text(ElementType::U64, ~0ull), "18446744073709551615");
}

TEST(Diagnostic, ShowsLineAndCaret) {
  std::string out = render("m.hlo", "first\n  second line\n", {8, "bad word", "try another", {}});
  EXPECT_EQ(out, "m.hlo:2:3: error: bad word\n    second line\n    ^\n  hint: try another\n");
}

}  // namespace
}  // namespace hlo
