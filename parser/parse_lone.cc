// A shape or a literal that is given by itself.
#include "parser/parser_impl.h"

namespace hlo {

ShapeId Parser::lone_shape() {
  return lone("shape", [&] { return shape(); });
}

LitId Parser::lone_literal(ShapeId s) {
  return lone("literal", [&] { return literal(s); });
}

ShapeId parse_shape(std::string_view text, Universe& universe) {
  return Parser(text, borrowed(universe), {}).lone_shape();
}

LitId parse_literal(std::string_view text, ShapeId shape, Universe& universe, const ParseOptions& options) {
  return Parser(text, borrowed(universe), options).lone_literal(shape);
}

}  // namespace hlo
