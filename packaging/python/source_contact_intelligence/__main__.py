from source_contact_intelligence import source

source()
