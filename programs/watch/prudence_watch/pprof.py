# SPDX-License-Identifier: MIT
"""A profile as pprof reads it: a protocol buffer, compressed by gzip. The messages are described here by number, name and
type of their fields (https://github.com/google/pprof, proto/profile.proto), and written by python3-protobuf. Functions and lines are in the
file, because most readers other than pprof do not look for them in programs."""

import gzip

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .bounds import TIME
from .modules import Modules

INT, UNSIGNED, BOOL, TEXT, MESSAGE = (descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
                                      descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
                                      descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
                                      descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
                                      descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE)
PACKAGE = "perftools.profiles"
# The fields that are written: number, name, type (or the message's name), and whether there may be many.
MESSAGES = {
    "ValueType": [(1, "type", INT, False), (2, "unit", INT, False)],
    "Label": [(1, "key", INT, False), (2, "str", INT, False)],
    "Sample": [(1, "location_id", UNSIGNED, True), (2, "value", INT, True), (3, "label", "Label", True)],
    "Mapping": [(1, "id", UNSIGNED, False), (2, "memory_start", UNSIGNED, False),
                (3, "memory_limit", UNSIGNED, False), (4, "file_offset", UNSIGNED, False),
                (5, "filename", INT, False), (6, "build_id", INT, False), (7, "has_functions", BOOL, False),
                (8, "has_filenames", BOOL, False), (9, "has_line_numbers", BOOL, False), (10, "has_inline_frames", BOOL, False)],
    "Line": [(1, "function_id", UNSIGNED, False), (2, "line", INT, False)],
    "Location": [(1, "id", UNSIGNED, False), (2, "mapping_id", UNSIGNED, False), (3, "address", UNSIGNED, False), (4, "line", "Line", True)],
    "Function": [(1, "id", UNSIGNED, False), (2, "name", INT, False), (3, "system_name", INT, False), (4, "filename", INT, False)],
    "Profile": [(1, "sample_type", "ValueType", True), (2, "sample", "Sample", True), (3, "mapping", "Mapping", True),
                (4, "location", "Location", True), (5, "function", "Function", True), (6, "string_table", TEXT, True),
                (9, "time_nanos", INT, False), (11, "period_type", "ValueType", False), (12, "period", INT, False),
                (13, "comment", INT, True), (14, "default_sample_type", INT, False)],
}
# Name, unit, and the value of a site of that role.
VALUES = [
    ("inuse_objects", "count", "allocates", lambda site: site.objects_now),
    ("inuse_space", "bytes", "allocates", lambda site: site.bytes_now),
    ("alloc_objects", "count", "allocates", lambda site: site.objects_ever),
    ("alloc_space", "bytes", "allocates", lambda site: site.bytes_ever),
    ("lifetime", "microseconds", "allocates", lambda site: site.age_us),
    ("latent_objects", "count", "defers", lambda site: site.objects_now),
    ("latent_space", "bytes", "defers", lambda site: site.bytes_now),
    ("deferred_objects", "count", "defers", lambda site: site.objects_ever),
    ("deferred_space", "bytes", "defers", lambda site: site.bytes_ever),
    ("deferred_time", "microseconds", "defers", lambda site: site.age_us),
]
DEFAULT = "inuse_space"


def message_class():
    file = descriptor_pb2.FileDescriptorProto(name="prudence/profile.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind, many in fields:
            added = message.field.add(number=number, name=field, label=3 if many else 1,
                                      type=kind if isinstance(kind, int) else MESSAGE)
            if added.type == MESSAGE:
                added.type_name = f".{PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    profile = pool.FindMessageTypeByName(f"{PACKAGE}.Profile")
    if hasattr(message_factory, "GetMessageClass"): # since protobuf 4.22
        return message_factory.GetMessageClass(profile)
    return message_factory.MessageFactory(pool).GetPrototype(profile)


class Writer:
    """Writes a profile into the message."""

    def __init__(self, profile):
        self.profile, self.out, self.modules = profile, message_class()(), Modules()
        self.strings, self.locations, self.mappings, self.functions = {}, {}, {}, {}
        self.unnamed = set() # mappings in which pprof has to look for names: it would not find what the compiler inlined
        self.text("") # the first must be empty

    def text(self, text):
        text = text.encode(errors="replace").decode() # of bytes that are not UTF-8
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.out.string_table.append(text)
        return self.strings[text]

    def mapping(self, mapping):
        if mapping not in self.mappings:
            self.mappings[mapping] = len(self.mappings) + 1
            self.out.mapping.add(id=self.mappings[mapping], memory_start=mapping.start, memory_limit=mapping.end,
                                 file_offset=mapping.offset, filename=self.text(mapping.path),
                                 build_id=self.text(self.modules.module(mapping.path).build_id))
        return self.mappings[mapping]

    def function(self, name, file):
        if (name, file) not in self.functions:
            self.functions[name, file] = len(self.functions) + 1
            self.out.function.add(id=self.functions[name, file], name=self.text(name), system_name=self.text(name), filename=self.text(file))
        return self.functions[name, file]

    def location(self, call):
        """The call is before the return address."""
        if call not in self.locations:
            mapping = self.profile.mapping_of(call - 1)
            self.locations[call] = len(self.locations) + 1
            added = self.out.location.add(id=self.locations[call], address=call - 1, mapping_id=self.mapping(mapping) if mapping else 0)
            frames = self.modules.frames(self.profile, call)
            if not all(frame.named for frame in frames):
                self.unnamed.add(added.mapping_id)
            for frame in frames:
                file, _, line = frame.line.rpartition(":")
                added.line.add(function_id=self.function(frame.function, file), line=int(line) if line.isdecimal() else 0)
        return self.locations[call]

    def sample(self, site):
        values = [min(round(of(site)), TIME) if site.role == role else 0 for _, _, role, of in VALUES]
        added = self.out.sample.add(location_id=[self.location(call) for call in site.calls], value=values)
        added.label.add(key=self.text("cache"), str=self.text(site.cache))

    def write(self):
        for name, unit, _, _ in VALUES:
            self.out.sample_type.add(type=self.text(name), unit=self.text(unit))
        for site in self.profile.sites:
            self.sample(site)
        for mapping in self.out.mapping:
            mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = mapping.has_inline_frames = mapping.id not in self.unnamed
        self.out.default_sample_type = self.text(DEFAULT)
        self.out.time_nanos, self.out.period = self.profile.time_ns, self.profile.rate
        self.out.period_type.type, self.out.period_type.unit = self.text("space"), self.text("bytes")
        self.out.comment.append(self.text(f"process {self.profile.pid} ({self.profile.program}), "
                                          f"prudence {self.profile.version}"))
        return gzip.compress(self.out.SerializeToString(), mtime=0)


def converted(profile):
    """Bytes of a file for pprof, which takes the first mapping for the program's."""
    writer = Writer(profile)
    for mapping in profile.mappings:
        if mapping.path.rsplit("/", 1)[-1] == profile.program:
            writer.mapping(mapping)
    return writer.write()
