// Interners, names, element types, literals' text.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ir/base/checked.h"
#include "ir/base/checksum.h"
#include "ir/base/source.h"
#include "ir/base/stack_guard.h"
#include "ir/marks.h"
#include "ir/module.h"
#include "ir/types/literal.h"

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
  // A root's first number, and the next ones on both sides of it.
  const StrId first = s.intern("z.9");
  EXPECT_EQ(s.find("z.9"), first);
  EXPECT_FALSE(s.find("z.8").valid());
  EXPECT_FALSE(s.find("z.10").valid());
  const StrId below = s.intern("z.8"), away = s.intern("z.9000000"), above = s.intern("z.10");
  EXPECT_EQ((std::vector<StrId>{s.find("z.9"), s.find("z.8"), s.find("z.9000000"), s.find("z.10")}),
            (std::vector<StrId>{first, below, away, above}));
  EXPECT_EQ(s.intern("z.9"), first);
  EXPECT_EQ(s[above], "z.10");
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
  EXPECT_EQ(m.unique("a b.3"), "a_b.3");
  EXPECT_EQ(m.unique("mul.007"), "mul.7");
  EXPECT_EQ(m.unique("mul.7"), "mul.0");
  EXPECT_EQ(m.unique("mul.7"), "mul.1");
  EXPECT_EQ(m.unique("sub.0"), "sub.0");
  EXPECT_EQ(m.unique("sub"), "sub.1");
  EXPECT_EQ(m.unique("add.5.0"), "add.5.0");
  EXPECT_EQ(m.unique("a-1:2.x"), "a-1_2.x");
}

// Against a set of numbers for each root: near ones, far ones, and far ones that the near ones reach later.
TEST(NameUniquer, NumbersNearAndFar) {
  NameUniquer n;
  std::map<std::string, std::pair<std::set<uint64_t>, uint64_t>> model;  // taken, and where to look next
  auto expected = [&](const std::string& root, uint64_t id, bool numbered) {
    auto& [taken, next] = model.try_emplace(root, std::set<uint64_t>(), 0).first->second;
    if (!taken.insert(id).second) {
      while (!taken.insert(next).second) ++next;
      id = next++;
    }
    return id == 0 && !numbered ? root : root + "." + std::to_string(id);
  };
  uint64_t random = 7;
  for (int k = 0; k < 40000; ++k) {
    random = mix64(random + 1);
    const std::string root = "r" + std::to_string(random % 5);
    const uint64_t kind = random / 5 % 8, number = random / 64;
    const uint64_t id = kind < 3 ? 0 : kind < 5 ? number % 100 : kind < 7 ? number % 30000 : number % (1u << 24);
    const bool numbered = id > 0 || kind == 1;
    ASSERT_EQ(n.unique(numbered ? root + "." + std::to_string(id) : root), expected(root, id, numbered)) << k;
  }
}

TEST(NameUniquer, CopiesGoOnByThemselves) {
  NameUniquer n;
  for (int k = 0; k < 100; ++k) n.unique("add");
  n.unique("mul.7.0");
  NameUniquer copy = n;
  EXPECT_EQ(n.unique("add"), "add.100");
  EXPECT_EQ(n.unique("first"), "first");
  EXPECT_EQ(copy.unique("add"), "add.100");
  EXPECT_EQ(copy.unique("second"), "second");
  EXPECT_EQ(copy.unique("first"), "first");
  EXPECT_EQ(n.unique("second"), "second");
  EXPECT_EQ(copy.unique("mul.7.0"), "mul.7.1");
  EXPECT_EQ(n.unique("mul.7.0"), "mul.7.1");
}

TEST(StringInterner, CopiesGoOnByThemselves) {
  StringInterner one;
  const StrId x = one.intern("x.1"), y = one.intern("why");
  StringInterner two = one;
  const StrId a = one.intern("a"), b = two.intern("b");
  EXPECT_EQ(a, b);
  EXPECT_EQ(one[a], "a");
  EXPECT_EQ(two[b], "b");
  EXPECT_EQ(two[x], "x.1");
  one = two;
  EXPECT_EQ(one[y], "why");
  EXPECT_EQ(one.intern("b"), b);
  EXPECT_EQ(one.intern("c"), two.intern("d"));
  EXPECT_EQ(two[two.find("d")], "d");
}

TEST(Marks, OfEachWalkItsOwn) {
  for (int round = 0; round < 3; ++round) {
    Marks outer(4);
    EXPECT_EQ(outer[InstId(2u)], 0u);
    outer.set(InstId(2u), 5);
    {
      Marks inner(8);
      InstNumbers numbers(8);
      EXPECT_EQ(inner[InstId(2u)], 0u);
      EXPECT_EQ(numbers[InstId(2u)], InstNumbers::kNone);
      inner.add(InstId(2u), 1), inner.add(InstId(2u), 2);
      EXPECT_EQ(inner[InstId(2u)], 3u);
      numbers.set(InstId(7u), 0), numbers.set(InstId(2u), 9);
      EXPECT_EQ(numbers[InstId(7u)], 0u);
      EXPECT_EQ(numbers[InstId(2u)], 9u);
    }
    EXPECT_EQ(outer[InstId(2u)], 5u);
    EXPECT_EQ(outer[InstId(100u)], 0u);  // made since it began
    outer.set(InstId(100u), 1);
    EXPECT_EQ(outer[InstId(100u)], 1u);
    EXPECT_EQ(outer[InstId(99u)], 0u);
  }
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
