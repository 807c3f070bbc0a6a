"""As much of JSON Schema as docs/schemas/ uses: what is wrong with a value, in words. A word that is not known is an error of the schema."""
import json
import pathlib

KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}


class Schemas:
    def __init__(self, folder):
        self.all = {p.name: json.loads(p.read_text()) for p in sorted(pathlib.Path(folder).glob("*.json"))}
        for name, schema in self.all.items():
            self.check(schema, name, name)

    def check(self, schema, file, path):
        """The schema itself: known words, references that lead somewhere."""
        assert isinstance(schema, (dict, bool)), path
        if isinstance(schema, bool):
            return
        assert set(schema) <= KNOWN, (path, set(schema) - KNOWN)
        if "$ref" in schema:
            self.resolve(schema["$ref"], file)
        types = schema.get("type", [])
        assert set([types] if isinstance(types, str) else types) <= set(TYPES), (path, types)
        assert set(schema.get("required", [])) <= set(schema.get("properties", {})), path
        inner = [*schema.get("$defs", {}).items(), *schema.get("properties", {}).items()] + list(enumerate(schema.get("anyOf", [])))
        inner += [(word, schema[word]) for word in ("items", "additionalProperties") if word in schema]
        for key, part in inner:
            self.check(part, file, f"{path}/{key}")

    def resolve(self, reference, file):
        name, _, pointer = reference.partition("#")
        file = name or file
        schema = self.all[file]
        for part in filter(None, pointer.split("/")):
            schema = schema[part]
        return schema, file

    def wrong(self, value, file):
        """Empty where `value` is as docs/schemas/`file` says."""
        return self._wrong(value, self.all[file], file, "$")

    def _wrong(self, value, schema, file, path):
        if isinstance(schema, bool):
            return "" if schema else f"{path}: nothing may stand here"
        if "$ref" in schema:
            target, home = self.resolve(schema["$ref"], file)
            if why := self._wrong(value, target, home, path):
                return why
        types = schema.get("type")
        if types and not any(self._is(value, t) for t in ([types] if isinstance(types, str) else types)):
            return f"{path}: {json.dumps(value)[:60]} is not {types}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{path}: {value!r} is none of {schema['enum']}"
        if "const" in schema and value != schema["const"]:
            return f"{path}: {value!r} is not {schema['const']!r}"
        if "anyOf" in schema:
            reasons = [self._wrong(value, s, file, path) for s in schema["anyOf"]]
            if all(reasons):
                return f"{path}: " + " / ".join(reasons)
        if isinstance(value, dict):
            missing = [k for k in schema.get("required", []) if k not in value]
            if missing:
                return f"{path}: without {missing}"
            rest = schema.get("additionalProperties", True)
            for key, part in value.items():
                if why := self._wrong(part, schema.get("properties", {}).get(key, rest), file, f"{path}.{key}"):
                    return why
        if isinstance(value, list) and "items" in schema:
            for k, part in enumerate(value):
                if why := self._wrong(part, schema["items"], file, f"{path}[{k}]"):
                    return why
        return ""

    @staticmethod
    def _is(value, name):
        return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))
