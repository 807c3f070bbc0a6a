// A step of training as findings and memory see it: the state comes in, a changed one of its shape goes out.
#pragma once

namespace hlo {

inline constexpr const char* kState = R"(HloModule m, is_scheduled=true
f {
  p = f32[512,256]{1,0} parameter(0)
  g = f32[512,256]{1,0} parameter(1)
  ROOT a = f32[512,256]{1,0} subtract(p, g)
}
ENTRY e {
  w = f32[512,256]{1,0} parameter(0)
  x = f32[512,64]{1,0} parameter(1)
  y = f32[64,256]{1,0} parameter(2)
  d = f32[512,256]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[512,256]{1,0} fusion(w, d), kind=kLoop, calls=f
})";

}  // namespace hlo
